"""Where a campaign's servers run: the host, the engine installs on it, the model's path there."""

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from moeagent.agent.settings import CampaignSettings, HostSettings
from moeagent.memory.errors import InputError
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.engines.registry import default_install
from moeagent.tools.engines.wrapping import through_wrapper
from moeagent.tools.hosts.environment import HostWithEnvironment
from moeagent.tools.hosts.factory import open_host
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.protocol import Host
from moeagent.tools.hosts.ssh_settings import SshSettings

SIM = "sim"


@dataclass
class Place:
    """An opened host and what is launched on it."""

    host: Host
    model: str
    installs: dict[str, EngineInstall]


def open_place(settings: CampaignSettings, run: str) -> Place:
    """Open the host of the settings; nothing is connected until the first command."""
    if settings.host.target == SIM:
        return _simulated(settings, run)
    host = open_host(settings.host.target, ssh=ssh_settings(settings.host))
    own = default_install(settings.engine.name, local=settings.host.target == "local")
    return Place(host, settings.model, _installs(settings, own))


def ssh_settings(host: HostSettings) -> SshSettings:
    """The SSH part of the settings."""
    settings = SshSettings(accept_new=host.accept_new)
    if host.ssh_config:
        settings = replace(settings, config_file=Path(host.ssh_config).expanduser())
    if host.known_hosts:
        settings = replace(settings, known_hosts=(Path(host.known_hosts).expanduser(),))
    if host.identity:
        settings = replace(settings, key_files=(Path(host.identity).expanduser(),))
    return settings


def sim_folder(run: str) -> Path:
    """Where the simulated box of a run lives: outside the run folder, so that no run is tied to a place."""
    return Path(tempfile.gettempdir()) / f"moeagent-sim-{os.getuid()}" / run


def _simulated(settings: CampaignSettings, run: str) -> Place:
    from moeagent.tools.sim.environment import SIM_ENGINE_VERSION, sim_host_environment

    if settings.engine.name != "sglang":
        raise InputError(f"the simulated machine runs sglang, not {settings.engine.name}: leave --engine out")
    sim = settings.sim
    box = sim_host_environment(
        sim_folder(run),
        seed=sim.seed,
        model=sim.model,
        startup_scale=sim.startup_scale,
        serving_scale=sim.serving_scale,
        held_gib=sim.held_gib,
    )
    env = {**box.env, "PATH": f"{box.bin_dir}:{os.environ.get('PATH', os.defpath)}"}
    host = HostWithEnvironment(LocalHost(SIM, simulated=True), env, name=SIM, simulated=True)
    own = EngineInstall(version=SIM_ENGINE_VERSION, simulated=True)
    return Place(host, box.model_path, _installs(settings, own))


def _installs(settings: CampaignSettings, own: EngineInstall) -> dict[str, EngineInstall]:
    if settings.engine.command:
        own = own.model_copy(update={"command": settings.engine.command})
    if settings.engine.env:
        own = own.model_copy(update={"env": {**own.env, **settings.engine.env}})
    own = own.model_copy(update={"wrapper": settings.engine.wrapper})
    return {each.name: through_wrapper(each) for each in (own, *settings.engine.install)}
