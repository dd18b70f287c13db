"""Which host a campaign runs on, and what its settings must say before it starts."""

import shutil

from moeagent.agent.own_ideas import with_installs
from moeagent.agent.place import SIM
from moeagent.agent.secret_settings import refuse_secrets
from moeagent.agent.settings import CampaignSettings
from moeagent.memory.errors import InputError
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.engines.registry import engine_by_name
from moeagent.tools.engines.wrapping import through_wrapper

ENGINE_PROGRAMS = ("llama-server", "vllm", "sglang")
GPU_PROGRAMS = ("nvidia-smi", "rocm-smi")


def decide_host(settings: CampaignSettings) -> CampaignSettings:
    """Settings with a host. Raises InputError where this machine could be meant and nobody said so."""
    if settings.host.target:
        return settings
    found = [name for name in (*GPU_PROGRAMS, *ENGINE_PROGRAMS) if shutil.which(name)]
    if found:
        raise InputError(
            f"this machine has {', '.join(found)}: say --host local to optimise a server here, --host sim "
            "for the simulated machine, or --host user@machine for another"
        )
    return settings.model_copy(update={"host": settings.host.model_copy(update={"target": SIM})})


def prepare(settings: CampaignSettings) -> CampaignSettings:
    """Settings that a campaign can start with. Raises InputError for what is missing, or a secret in them."""
    refuse_secrets(settings)
    _check_prices(settings)
    _check_wrappers(settings)
    engine = engine_by_name(settings.engine.name)
    settings = settings.model_copy(
        update={
            "engine": settings.engine.model_copy(update={"name": engine.name}),
            "idea": with_installs(settings.idea, settings.engine.install),
        }
    )
    if settings.host.target == SIM:
        return _with_sim_defaults(settings)
    if not settings.model:
        raise InputError(
            "no model: say --model with its path on the host, or set it in moeagent.toml (`moeagent init`)"
        )
    return settings


def _check_prices(settings: CampaignSettings) -> None:
    """Raises InputError for a bound on money that no price could ever reach."""
    llm, machine = settings.llm, settings.host.price_per_hour
    priced = llm.price_per_million_input or llm.price_per_million_output
    if settings.limits.money is not None and not (machine or priced):
        raise InputError("limits.money needs a price: set host.price_per_hour, or the prices of [llm]")
    if settings.limits.llm_money is not None and not priced:
        raise InputError("limits.llm_money needs llm.price_per_million_input or _output: set them in [llm]")
    if machine is None and any(rule.cost_over is not None for rule in settings.policy.rule):
        raise InputError("a rule of the policy says cost_over, which needs host.price_per_hour: set it")


def _check_wrappers(settings: CampaignSettings) -> None:
    """Raises InputError for an install whose server could not be found and stopped again."""
    engine = settings.engine
    own = EngineInstall(command=engine.command, env=engine.env, wrapper=engine.wrapper)
    for install in (own, *engine.install):
        through_wrapper(install)


def _with_sim_defaults(settings: CampaignSettings) -> CampaignSettings:
    """The campaign's own baseline where the user gives none."""
    from moeagent.tools.sim.machines import CAMPAIGNS

    if settings.sim.model not in CAMPAIGNS:
        raise InputError(
            f"--sim-model {settings.sim.model}: the simulated machine has {', '.join(CAMPAIGNS)}"
        )
    if settings.baseline.flags or settings.baseline.env:
        return settings
    own = CAMPAIGNS[settings.sim.model].baseline
    update = {"flags": dict(own.flags), "env": dict(own.env)}
    return settings.model_copy(update={"baseline": settings.baseline.model_copy(update=update)})
