"""Whether the engine compiled kernels while a rung was measured: that is first use, not speed.

Engines compile some kernels when a batch of a new shape first needs one, and say so in the log. The warm-up
cannot meet every shape, so the log is asked for such lines from the rung's first send on.
"""

from collections.abc import Sequence

from moeagent.memory.errors import HostError
from moeagent.memory.records import Rung
from moeagent.tools.hosts.command import Command
from moeagent.tools.hosts.protocol import Host
from moeagent.tools.hosts.script import SHORT_S

LENGTH = "log"
"""First word of the lines in which sampling.sh says how long the server's log is: log SECONDS BYTES."""
_SEARCH = 'tail -c "+$1" "$2" | grep -aoE -m 3 -e "$3" | cut -c 1-200'


def length_before(samples: str, at_s: float) -> int | None:
    """Bytes of the server's log at the last look before a moment in Unix time; None without one."""
    looks = [line.split() for line in samples.splitlines() if line.startswith(f"{LENGTH} ")]
    # The stamps are cut to whole seconds.
    earlier = [int(size) for _, second, size in looks if int(second) + 1 <= at_s]
    return earlier[-1] if earlier else None


def compiled_since(host: Host, log: str, length: int, patterns: Sequence[str]) -> str:
    """What the log says since it had that length that one of the patterns matches; empty when nothing does.

    A log that cannot be searched says nothing.
    """
    if not patterns:
        return ""
    argv = ("sh", "-c", _SEARCH, "moeagent", str(length + 1), log, "|".join(f"({p})" for p in patterns))
    try:
        found = host.run(Command(argv, repeatable=True, title="searching the log"), timeout_s=SHORT_S)
    except HostError:
        return ""
    return next(iter(found.stdout.decode("utf-8", "replace").splitlines()), "")


def with_compilation(rung: Rung, said: str) -> Rung:
    """The rung, invalid when the engine compiled meanwhile."""
    return rung.spoilt(f"the engine compiled kernels meanwhile: {said}" if said else "")
