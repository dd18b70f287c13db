"""Which world a server process lives in: from the model folder, the box's file and the environment."""

import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moeagent.tools.sim.machines import CAMPAIGNS, Instance, campaign_world
from moeagent.tools.sim.memory import plan_memory
from moeagent.tools.sim.settings import resolve
from moeagent.tools.sim.speed import Speed
from moeagent.tools.sim.state import SimConfig, held_by_others, load_config, state_dir
from moeagent.tools.sim.world import World

MODEL_KEY = "moeagent_simulated_model"
TAG_ENV = "MOEAGENT_TAG"


class ModelPathError(Exception):
    """The model path names no model folder."""


@dataclass(frozen=True)
class Box:
    """One server process on its simulated box."""

    world: World
    instance: Instance
    config: SimConfig
    folder: Path
    gpus: tuple[int, ...]
    nonce: str


def _campaign_of(model_path: str, config: SimConfig) -> str:
    path = Path(model_path) / "config.json"
    if not path.is_file():
        raise ModelPathError(model_path)
    named = json.loads(path.read_text()).get(MODEL_KEY)
    known = {campaign.model_name: key for key, campaign in CAMPAIGNS.items()}
    return known.get(named, config.campaign)


def box_for(parsed: Mapping[str, Any], env: Mapping[str, str]) -> Box:
    """The box of these server arguments. Raises ModelPathError when there is no such model folder."""
    config, folder = load_config(env), state_dir(env)
    world = campaign_world(_campaign_of(parsed["model_path"], config), config.seed)
    settings = resolve(parsed, env, world)
    first, step = int(settings.args["base_gpu_id"]), int(settings.args["gpu_id_step"])
    gpus = tuple(first + step * rank for rank in range(min(settings.ranks, world.machine.count)))
    held = held_by_others(folder, config, gpus)
    instance = Instance(world, settings, plan_memory(world, settings, held), Speed(world, settings))
    nonce = env.get(TAG_ENV) or f"{os.getpid()}-{uuid.uuid4().hex}"
    return Box(world, instance, config, folder, gpus, nonce)
