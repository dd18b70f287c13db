"""Which host a campaign runs on, and what the simulated machine needs before it starts."""

import shutil

from moeagent.agent.settings import CampaignSettings
from moeagent.memory.errors import InputError

ENGINE_PROGRAMS = ("llama-server", "vllm", "sglang")


def decide_host(settings: CampaignSettings) -> CampaignSettings:
    """Settings with a host. Raises InputError where this machine could be meant and nobody said so."""
    if settings.host.target:
        return settings
    found = [name for name in ("nvidia-smi", "rocm-smi", *ENGINE_PROGRAMS) if shutil.which(name)]
    if found:
        raise InputError(
            f"this machine has {', '.join(found)}: say --host local to optimise a server here, --host sim for "
            "the simulated machine, or --host user@machine for another"
        )
    host = settings.host.model_copy(update={"target": "sim"})
    return settings.model_copy(update={"host": host})


def is_simulated(settings: CampaignSettings) -> bool:
    """Whether the campaign runs on the simulated machine."""
    return settings.host.target == "sim"
