"""Campaign settings: `moeagent.toml`, and flags over it.

Precedence: command line, then environment (MOEAGENT_LIMITS__HOURS=8), then the TOML file, then defaults.
"""

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, NonNegativeFloat, PositiveFloat, PositiveInt, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from moeagent.agent.approval.policy import ApprovalPolicy, Mode
from moeagent.agent.notify.settings import NotifySettings
from moeagent.agent.proposers.view import KnobLimit
from moeagent.memory.errors import InputError
from moeagent.memory.records import Constraint, FlagValue, Goal, Record, Workload
from moeagent.memory.records.config import EnvName, FlagName
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.hosts.wrappers import WrapperSpec

SETTINGS_FILE = "moeagent.toml"


class HostSettings(Record):
    """Where the server runs."""

    target: str = ""
    """local, sim, user@host[:port] or a name in the SSH configuration; empty to decide from this machine."""
    ssh_config: str | None = None
    """Path of the SSH configuration; ~/.ssh/config when not given."""
    identity: str | None = None
    """Path of a private key file to offer first."""
    known_hosts: str | None = None
    """Path of the known_hosts file; ~/.ssh/known_hosts when not given."""
    accept_new: bool = False
    """Accept the key of a host that was never seen before; a changed key is refused always."""
    folder: str = "~/.moeagent"
    """Where moeagent keeps server logs and process files on the host."""
    price_per_hour: NonNegativeFloat | None = None
    """Price of the machine per hour, for --goal min-cost."""


class EngineSettings(Record):
    """Which server is launched, and how."""

    name: str = "sglang"
    """sglang, vllm or llamacpp."""
    command: tuple[str, ...] = ()
    """Launch command up to the flags, in place of the engine's own default."""
    env: dict[EnvName, str] = Field(default_factory=dict)
    """Set for every launch and for the survey's questions to the engine; no knob, unlike the baseline's."""
    wrapper: WrapperSpec | None = None
    """What `command` is started through, such as [engine.wrapper] command = ["docker", "run", "--gpus=all",
    "-v=/models:/models", "IMAGE"] (the model under one path on both sides). docker, podman and Slurm are
    known; for another say how to tag, find, stop and kill what it starts."""
    install: tuple[EngineInstall, ...] = ()
    """Further installs of the engine, such as a newer virtual environment: each is tried as an idea."""


class BaselineSettings(Record):
    """The configuration that every gain is measured against."""

    flags: dict[FlagName, FlagValue] = Field(default_factory=dict)
    env: dict[EnvName, str] = Field(default_factory=dict)
    launches: PositiveInt = 3
    """How often it is launched before the first idea: the noise floor comes from these."""


class LimitSettings(Record):
    """What the campaign may spend; checked before spending."""

    experiments: PositiveInt = 10
    """Hypotheses that are launched."""
    launches: PositiveInt = 40
    hours: PositiveFloat = 8.0
    """Time at work, over all resumes. A launch that would pass it by what launches take is not started."""
    gpu_hours: PositiveFloat | None = None
    """Hours at work times the GPUs of the host; held as hours are."""
    money: PositiveFloat | None = None
    """The machine at host.price_per_hour and the language model at its prices; held as hours are."""
    pivots: PositiveInt = 3
    """Attempts to mend one failed configuration."""
    consecutive_failures: PositiveInt = 6
    prove_each_step: bool = True
    """False goes on from what measured best before its gain is proven: for very few launches. No gain is
    claimed without proof either way."""
    llm_calls: PositiveInt = 100
    llm_tokens: PositiveInt = 1_000_000
    llm_money: PositiveFloat | None = None
    llm_wall_s: PositiveFloat | None = None
    """Seconds that the run may wait for the language model in all."""


class LlmSettings(Record):
    """The language model that proposes; without base_url the playbook does."""

    base_url: str | None = None
    """Any OpenAI-compatible endpoint, such as http://127.0.0.1:8000/v1."""
    model: str = "default"
    api_key_env: str = "OPENAI_API_KEY"
    """Name of the environment variable that holds the key; a local server needs none."""
    timeout_s: PositiveFloat = 60.0
    price_per_million_input: NonNegativeFloat = 0.0
    price_per_million_output: NonNegativeFloat = 0.0


class SpaceSettings(Record):
    """The engineer's own bounds on the search."""

    pin: tuple[str, ...] = ()
    """Flags and variables that stay as the baseline has them."""
    forbid: tuple[str, ...] = ()
    """Flags and variables that are never used."""
    limit: dict[str, KnobLimit] = Field(default_factory=dict)
    """Bounds or choices of single knobs, such as [space.limit."--max-num-seqs"] low = 64, high = 512."""


class OwnIdea(Record):
    """A hypothesis of the engineer: [[idea]] in the settings, or in a file given with --try."""

    statement: str = ""
    reason: str = ""
    flags: dict[FlagName, FlagValue] = Field(default_factory=dict)
    """Set against the best configuration so far."""
    env: dict[EnvName, str] = Field(default_factory=dict)
    without_flags: tuple[FlagName, ...] = ()
    without_env: tuple[EnvName, ...] = ()
    install: str = ""
    """Name of one of the engine installs, to run it instead of the one so far."""


class OutputCheckSettings(Record):
    """Greedy answers compared with the baseline's: fast and wrong is a regression."""

    enabled: bool = True
    batch_sizes: tuple[PositiveInt, ...] = (1, 8, 64, 256)
    """Requests in flight; sizes above the ladder's top are left out."""
    prompts: PositiveInt = 8
    max_tokens: PositiveInt = 32
    command: tuple[str, ...] = ()
    """Your own check, such as ["python", "eval.py"]: run here against the baseline and against every
    configuration that measures better. It finds the server in MOEAGENT_BASE_URL (and OPENAI_BASE_URL, which
    ends in /v1) and the model in MOEAGENT_MODEL; status 0 passes, and a line {"score": 0.83} is shown. What
    fails it is regressed."""
    command_timeout_s: PositiveFloat = 900.0
    """Longest time that the command may take."""


class SimSettings(Record):
    """The simulated machine."""

    seed: int = 0
    model: str = "A"
    """A: a large NVFP4 MoE like GLM-5; B: one like Kimi-K2.5 with an EAGLE-3 draft model."""
    held_gib: NonNegativeFloat = 0.0
    """Memory that a stranger's process holds on every GPU."""
    startup_scale: PositiveFloat = 60.0
    """How many times faster than the clock on the wall its servers start."""
    serving_scale: PositiveFloat = 1.0
    """How many times faster than the clock on the wall its servers generate."""


def _as_mode(given: Any) -> Any:
    """Settings of the first version said true or false."""
    return {True: "always", False: "never"}.get(given, given) if isinstance(given, bool) else given


class CampaignSettings(BaseSettings):
    """Everything that decides a campaign; written to the run folder as resolved."""

    model_config = SettingsConfigDict(
        env_prefix="MOEAGENT_", env_nested_delimiter="__", extra="forbid", use_attribute_docstrings=True
    )

    host: HostSettings = HostSettings()
    engine: EngineSettings = EngineSettings()
    model: str = ""
    """Path of the model on the host, or a hub name that the engine resolves there."""
    baseline: BaselineSettings = BaselineSettings()
    workload: Workload = Workload()
    goal: Goal = Goal()
    limits: LimitSettings = LimitSettings()
    llm: LlmSettings = LlmSettings()
    space: SpaceSettings = SpaceSettings()
    output_check: OutputCheckSettings = OutputCheckSettings()
    sim: SimSettings = SimSettings()
    notify: NotifySettings = NotifySettings()
    prompt: dict[str, str] = Field(default_factory=dict)
    """Prompts of your own by name, in place of those that `moeagent prompt` shows, headers included."""
    idea: tuple[OwnIdea, ...] = ()
    """The engineer's own hypotheses, tried first and judged like any other."""
    approve: Annotated[Mode, BeforeValidator(_as_mode)] = "never"
    """never: launch what vetting lets through; always: ask before each new configuration; risky: ask where
    the predicted chance of a crash is at least policy.risky_from. Where nobody can answer, the run stops and
    waits."""
    policy: ApprovalPolicy = ApprovalPolicy()
    """Rules on commands, flags, variables, risk and cost, such as [[policy.rule]] action = "deny",
    flags = {"--kv-cache-dtype" = "fp4*"}; of those that match the strictest wins."""
    load_from: Literal["auto", "controller", "host"] = "auto"
    """Where the load generator runs: here by a forwarded port, or on the host (auto: from 200 streams)."""
    start_timeout_s: PositiveFloat = 1800.0
    """Longest time that a server may take from start to ready."""
    rung_timeout_s: PositiveFloat = 1800.0
    """Longest time that one rung may take."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load_settings` merged: a replay must not see the environment of another day."""
        return (init_settings,)


def load_settings(path: Path | None, overrides: dict[str, Any]) -> CampaignSettings:
    """Read the settings file, if any, and lay the command line over it.

    Overrides are nested like the file; None means not given. Raises InputError that names file and setting.
    """
    from_file = read_settings_file(path) if path else {}
    try:
        merged = _merge(from_file, _environment())
        return CampaignSettings(**_merge(merged, overrides))
    except ValidationError as error:
        raise InputError(_explain(error, path)) from None


def read_settings_file(path: Path) -> dict[str, Any]:
    """Parse the TOML file. Raises InputError with the line where it is malformed."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"{path} is not valid TOML: {error}. Mend that line, or `moeagent init` a new one"
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def _environment() -> dict[str, Any]:
    from pydantic_settings import EnvSettingsSource

    return EnvSettingsSource(CampaignSettings)()


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        if value is None:
            continue
        if isinstance(value, dict):
            below = merged.get(key)
            value = _merge(below if isinstance(below, dict) else {}, value)
        merged[key] = value
    return merged


def _explain(error: ValidationError, path: Path | None) -> str:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    where = f" (in {path} or on the command line)" if path else ""
    if first["type"] == "extra_forbidden":
        near = get_close_matches(str(first["loc"][-1]), known_settings(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"there is no setting {name!r}{where}{hint} `moeagent init` writes a file with all of them"
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"setting {name!r}{where}: {first['msg']}{more}"


def known_settings() -> list[str]:
    """The last part of every setting's name."""
    names: list[str] = []
    for name, field in CampaignSettings.model_fields.items():
        names.append(name)
        inner = getattr(field.annotation, "model_fields", {})
        names.extend(inner)
    return names


def parse_slo(text: str) -> Constraint:
    """`ttft_p99=2s`, `tpot_p99=50ms`, `output_tok_s=500`, `error_rate=0.01`. Raises InputError."""
    name, equals, bound = text.partition("=")
    metric, _, percentile = name.rpartition("_")
    if percentile not in ("mean", "p50", "p90", "p95", "p99"):
        metric, percentile = name, ""
    try:
        value = _duration_or_number(bound)
        fields = {"metric": metric, "percentile": percentile or None, "bound": value}
        constraint = Constraint.model_validate(fields)
    except ValueError:
        raise InputError(
            f"--slo {text}: write metric_percentile=bound, such as ttft_p99=2s, tpot_p99=50ms, itl_p95=80ms, "
            "e2e_p99=30s, output_tok_s=500 or error_rate=0.01"
        ) from None
    if not equals or (metric in ("ttft", "tpot", "itl", "e2e") and not percentile):
        raise InputError(f"--slo {text}: name a percentile, such as {metric or 'ttft'}_p99=2s")
    return constraint


def _duration_or_number(text: str) -> float:
    for suffix, factor in (("ms", 1e-3), ("us", 1e-6), ("s", 1.0), ("%", 1e-2)):
        if text.endswith(suffix):
            return float(text.removesuffix(suffix)) * factor
    return float(text)
