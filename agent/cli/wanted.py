"""What `run` and `plan` are asked for, and the settings that come of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from moeagent.agent.settings import CampaignSettings

Goal = Annotated[str, typer.Option(help="max-throughput, min-latency, max-goodput or min-cost.")]
HostName = Annotated[str, typer.Option(help="local, sim, user@host[:port] or an SSH alias.")]
EngineName = Annotated[str, typer.Option(help="sglang, vllm or llamacpp.")]
Model = Annotated[str, typer.Option(help="Path of the model on the host.")]
Flags = Annotated[list[str] | None, typer.Option(help="Baseline flag, such as '--tp-size 8'.")]
Env = Annotated[list[str] | None, typer.Option(help="Baseline variable, such as NCCL_ALGO=Ring.")]
EngineCommand = Annotated[str, typer.Option(help="Launch command up to the flags, in one word.")]
Concurrency = Annotated[str, typer.Option(help="The ladder, such as 1,10,256,1024.")]
InputLen = Annotated[int | None, typer.Option(help="Input tokens of each request.")]
OutputLen = Annotated[int | None, typer.Option(help="Output tokens of each request.")]
Slo = Annotated[list[str] | None, typer.Option(help="Constraint, such as ttft_p99=2s.")]
Limits = Annotated[list[str] | None, typer.Option(help="Limit, such as experiments=10 or hours=8.")]
LlmUrl = Annotated[str, typer.Option(help="OpenAI-compatible endpoint that proposes.")]
LlmModel = Annotated[str, typer.Option(help="Name of the model at that endpoint.")]
OwnIdeas = Annotated[
    Path | None, typer.Option("--try", help="TOML file of your own [\\[idea]]s, tried first.")
]
AcceptNew = Annotated[bool, typer.Option("--accept-new", help="Accept an unknown SSH host key.")]
SshConfig = Annotated[str, typer.Option(help="SSH configuration file.")]
SimSeed = Annotated[int | None, typer.Option(help="World of the simulated machine.")]
SimModel = Annotated[str, typer.Option(help="Model of the simulated machine: A or B.")]
SettingsFile = Annotated[Path | None, typer.Option(help="Settings file; moeagent.toml if it is here.")]


@dataclass(frozen=True)
class Wanted:
    """The command line's words; empty where nothing was said."""

    goal: str
    host: str
    engine: str
    model: str
    flag: list[str] | None
    env: list[str] | None
    engine_command: str
    concurrency: str
    input_len: int | None
    output_len: int | None
    slo: list[str] | None
    limit: list[str] | None
    llm: str
    llm_model: str
    own: Path | None
    approve: str
    policy: Path | None
    accept_new: bool
    ssh_config: str
    sim_seed: int | None
    sim_model: str
    config: Path | None

    def settings(self) -> "CampaignSettings":
        """Settings that a campaign can start with. Raises InputError."""
        from moeagent.agent.hosting import decide_host, prepare
        from moeagent.agent.settings import SETTINGS_FILE, load_settings

        path = self.config or (Path(SETTINGS_FILE) if Path(SETTINGS_FILE).is_file() else None)
        return prepare(decide_host(load_settings(path, self._overrides())))

    def _overrides(self) -> dict[str, Any]:
        """Nested like the settings file; None where nothing was said."""
        from moeagent.agent.cli import parse
        from moeagent.agent.settings import parse_slo, read_settings_file

        constraints = tuple(c.model_dump() for c in map(parse_slo, self.slo or []))
        return {
            "host": {
                "target": self.host or None,
                "accept_new": self.accept_new or None,
                "ssh_config": self.ssh_config or None,
            },
            "engine": {"name": self.engine or None, "command": tuple(self.engine_command.split()) or None},
            "model": self.model or None,
            "baseline": {"flags": parse.flags(self.flag or []), "env": parse.variables(self.env or [])},
            "workload": {
                "ladder": parse.ladder(self.concurrency) if self.concurrency else None,
                "input_len": self.input_len,
                "output_len": self.output_len,
            },
            "goal": {"name": self.goal or None, "constraints": constraints or None},
            "llm": {"base_url": self.llm or None, "model": self.llm_model or None},
            "sim": {"seed": self.sim_seed, "model": self.sim_model or None},
            "idea": tuple(read_settings_file(self.own).get("idea", ())) if self.own else None,
            **parse.approval(self.approve, self.policy),
            **parse.limits(self.limit or []),
        }
