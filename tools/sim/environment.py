"""A simulated box to log in to: its executables, its engine and its model folders."""

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moeagent.tools.sim.catalogue import VERSION
from moeagent.tools.sim.hosting import MODEL_KEY
from moeagent.tools.sim.machines import CAMPAIGNS, Campaign
from moeagent.tools.sim.shapes import ModelShape, load_models
from moeagent.tools.sim.state import (
    CONFIG_FILE,
    SERVING_ENV,
    STARTUP_ENV,
    STATE_ENV,
    SimConfig,
    write_atomically,
)

SIM_ENGINE_COMMAND: tuple[str, ...] = (sys.executable, "-m", "moeagent.tools.sim.sglang_server")
"""Launch prefix of the simulated engine, up to where the flags begin."""
SIM_ENGINE_VERSION = VERSION


@dataclass(frozen=True)
class SimHost:
    """A prepared box; `env` goes to every command that runs on it."""

    env: dict[str, str]
    """MOEAGENT_SIM_* variables; PYTHONPATH with a stand-in `sglang` package."""
    bin_dir: Path
    """Executables (nvidia-smi) to be put first in PATH."""
    model_path: str
    engine_command: tuple[str, ...]
    campaign: Campaign


def _executable(path: Path, module: str) -> None:
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m {module} "$@"\n')
    path.chmod(0o755)


def _stand_in_package(site: Path) -> None:
    """A package `sglang` whose launcher and parser are the simulated ones."""
    package = site / "sglang"
    (package / "srt").mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(
        f'"""Stand-in of the simulated machine."""\n\n__version__ = "{VERSION}"\n'
    )
    (package / "srt" / "__init__.py").write_text("")
    distribution = site / f"sglang-{VERSION}.dist-info"
    distribution.mkdir(exist_ok=True)
    (distribution / "METADATA").write_text(f"Metadata-Version: 2.1\nName: sglang\nVersion: {VERSION}\n")
    (package / "version.py").write_text(f'__version__ = "{VERSION}"\n')
    (package / "srt" / "server_args.py").write_text(
        '"""The simulated engine\'s command line."""\n\n'
        "from moeagent.tools.sim.catalogue import add_cli_args\n\n\n"
        "class ServerArgs:\n    add_cli_args = staticmethod(add_cli_args)\n"
    )
    (package / "launch_server.py").write_text(
        "import os\nimport sys\n\nfrom moeagent.tools.sim.sglang_server import main\n\n"
        'if __name__ == "__main__":\n    sys.exit(main(sys.argv[1:], dict(os.environ)))\n'
    )


def model_config(name: str) -> dict[str, Any]:
    """The config.json of a model, in the spelling of its family."""
    model = load_models()[name]
    text = _text_config(model)
    if model.vision_layers:
        vision = {"vt_num_hidden_layers": model.vision_layers, "vt_hidden_size": model.vision_hidden}
        body = {
            "architectures": [model.architecture],
            "model_type": model.model_type,
            "text_config": text,
            "vision_config": vision,
        }
    else:
        body = {"architectures": [model.architecture], **text}
    return {**body, MODEL_KEY: name, "torch_dtype": "bfloat16"}


def _text_config(model: ModelShape) -> dict[str, Any]:
    config: dict[str, Any] = {
        "model_type": model.model_type, "num_hidden_layers": model.layers, "hidden_size": model.hidden,
        "num_attention_heads": model.heads, "num_key_value_heads": model.kv_heads, "head_dim": model.head_dim,
        "intermediate_size": model.dense_inter, "vocab_size": model.vocab,
        "max_position_embeddings": model.context,
    }  # fmt: skip
    if model.is_mla:
        config |= {
            "q_lora_rank": model.q_lora, "kv_lora_rank": model.kv_lora, "qk_nope_head_dim": model.qk_nope,
            "qk_rope_head_dim": model.qk_rope, "v_head_dim": model.v_dim,
        }  # fmt: skip
    if model.indexer_dim:
        config |= {"index_n_heads": model.indexer_heads, "index_head_dim": model.indexer_dim,
        "index_topk": 2048,
                   "num_nextn_predict_layers": 1}  # fmt: skip
    if model.experts:
        config |= {
            "n_routed_experts" if model.is_mla else "num_experts": model.experts,
            "num_experts_per_tok": model.top_k,
            "n_shared_experts": model.shared_experts, "moe_intermediate_size": model.expert_inter,
            "first_k_dense_replace": model.dense_layers,
        }  # fmt: skip
    if model.quant_method:
        algorithm = {"nvfp4": "NVFP4", "int4": "W4A16", "mxfp4": "MXFP4", "fp8": "FP8"}[model.quant]
        config["quantization_config"] = {"quant_method": model.quant_method, "quant_algo": algorithm}
        if model.quant == "nvfp4":
            config["quantization_config"] |= {
                "group_size": 16,
                "kv_cache_scheme": {"type": "float", "num_bits": 8},
            }
    return config


def write_model(root: Path, name: str) -> Path:
    """Make a model folder: config.json, and shards that are holes of the right size; returns the folder."""
    model = load_models()[name]
    folder = root / model.folder
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "config.json", json.dumps(model_config(name), indent=1) + "\n")
    names = [f"model-{n:05d}-of-{model.shards:05d}.safetensors" for n in range(1, model.shards + 1)]
    for shard in names:
        with (folder / shard).open("wb") as file:
            file.truncate(int(model.checkpoint_bytes / model.shards))
    weight_map = {f"shard.{number}": shard for number, shard in enumerate(names)}
    index = {"metadata": {"total_size": int(model.checkpoint_bytes)}, "weight_map": weight_map}
    write_atomically(folder / "model.safetensors.index.json", json.dumps(index, indent=1) + "\n")
    return folder


def sim_host_environment(
    state_dir: Path, *, seed: int = 0, model: str = "A", startup_scale: float = 1.0,
    serving_scale: float = 1.0, held_gib: float = 0.0,
) -> SimHost:  # fmt: skip
    """Prepare a simulated box under `state_dir`; model "A" is GLM-5-NVFP4, "B" Kimi-K2.5 with its draft
    model.

    A scale of 4 makes simulated time run four times as fast as the clock on the wall: a client sees four
    times the
    simulated tokens/s. Raises KeyError for another model.
    """
    campaign = CAMPAIGNS[model]
    bin_dir, site = state_dir / "bin", state_dir / "site"
    for folder in (state_dir / "servers", bin_dir, site):
        folder.mkdir(parents=True, exist_ok=True)
    config = SimConfig(
        campaign=model, seed=seed, startup_scale=startup_scale, serving_scale=serving_scale, held_gib=held_gib
    )
    write_atomically(state_dir / CONFIG_FILE, config.model_dump_json(indent=1) + "\n")
    _executable(bin_dir / "nvidia-smi", "moeagent.tools.sim.nvidia_smi")
    # `python3 -m sglang.launch_server` is then the simulated engine, under the real one's own command.
    (bin_dir / "python3").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    (bin_dir / "python3").chmod(0o755)
    _stand_in_package(site)
    path = write_model(state_dir / "models", campaign.model_name)
    env = {
        STATE_ENV: str(state_dir), STARTUP_ENV: str(startup_scale), SERVING_ENV: str(serving_scale),
        "PYTHONPATH": str(site),
    }  # fmt: skip
    return SimHost(env, bin_dir, str(path), SIM_ENGINE_COMMAND, campaign)
