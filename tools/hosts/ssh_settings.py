"""What a user may set about SSH. Everything else comes from the SSH configuration."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SshSettings:
    """Defaults follow OpenSSH: unknown host keys are refused, keys come from the agent and from files."""

    config_file: Path | None = None
    """None for ~/.ssh/config, which may be missing."""
    known_hosts: tuple[Path, ...] = ()
    """Instead of the files that the configuration names; accepted keys are added to the first."""
    key_files: tuple[Path, ...] = ()
    """Tried before those of the configuration."""
    accept_new: bool = False
    """Trust and write down the key of a host that was never met; a changed key is refused all the same."""
    use_agent: bool = True
    connect_s: float = 15.0
    """Where the configuration has no ConnectTimeout. For each of: reaching a server, agreeing on keys,
    logging in."""
    reconnect_s: float = 120.0
    """How long a lost connection is tried again before the call fails; the first connection is tried once."""
    keepalive_s: float = 15.0
    """Between two signs of life asked of the server, where the configuration has no ServerAliveInterval."""
    dead_after_s: float = 15.0
    """Without an answer for this long the connection counts as lost; with a ServerAliveInterval, after
    ServerAliveCountMax of them."""
    home: Path = field(default_factory=Path.home)
