"""What the simulated machine keeps on disk: its configuration, and the servers that hold GPU memory."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, PositiveFloat

from moeagent.memory.records import Record

STATE_ENV = "MOEAGENT_SIM_STATE"
STARTUP_ENV = "MOEAGENT_SIM_STARTUP_SCALE"
SERVING_ENV = "MOEAGENT_SIM_SERVING_SCALE"
CONFIG_FILE = "sim.json"


class SimConfig(Record):
    """One simulated box; a scale of 4 makes its time run four times as fast as the clock on the wall."""

    campaign: str = "A"
    seed: int = 0
    startup_scale: PositiveFloat = 1.0
    serving_scale: PositiveFloat = 1.0
    held_gib: float = Field(default=0.0, ge=0)
    """Memory that a stranger's process holds on every GPU."""


class ServerEntry(Record):
    """One running server."""

    pid: int
    started: str
    """Start time of the process as the kernel counts it, so that a reused pid is told apart."""
    gpus: tuple[int, ...]
    used_gib: float


def state_dir(env: Mapping[str, str]) -> Path:
    """The folder of this box; made when missing."""
    default = Path(tempfile.gettempdir()) / f"moeagent-sim-{os.getuid()}"
    folder = Path(env.get(STATE_ENV) or default)
    (folder / "servers").mkdir(parents=True, exist_ok=True)
    return folder


def load_config(env: Mapping[str, str]) -> SimConfig:
    """The box's configuration; the two scales may be overridden by the environment."""
    path = state_dir(env) / CONFIG_FILE
    config = SimConfig.model_validate_json(path.read_bytes()) if path.exists() else SimConfig()
    scales = {"startup_scale": env.get(STARTUP_ENV), "serving_scale": env.get(SERVING_ENV)}
    given = {name: float(value) for name, value in scales.items() if value}
    return SimConfig.model_validate({**config.model_dump(), **given})


def write_atomically(path: Path, text: str) -> None:
    """Write under a temporary name and rename."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(text)
    temporary.replace(path)


def start_time(pid: int) -> str | None:
    """The kernel's start time of a process; None when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]


def register(folder: Path, gpus: tuple[int, ...], used_gib: float) -> None:
    """Say that this process holds memory."""
    pid = os.getpid()
    entry = ServerEntry(pid=pid, started=start_time(pid) or "", gpus=gpus, used_gib=used_gib)
    write_atomically(folder / "servers" / f"{pid}.json", entry.model_dump_json())


def unregister(folder: Path) -> None:
    """Say that this process holds nothing any more."""
    (folder / "servers" / f"{os.getpid()}.json").unlink(missing_ok=True)


def running_servers(folder: Path) -> tuple[ServerEntry, ...]:
    """Servers that are alive; entries of dead ones are removed."""
    alive = []
    for path in sorted((folder / "servers").glob("*.json")):
        try:
            entry = ServerEntry.model_validate(json.loads(path.read_text()))
        except FileNotFoundError:
            continue
        if start_time(entry.pid) == entry.started:
            alive.append(entry)
        else:
            path.unlink(missing_ok=True)
    return tuple(alive)


def held_by_others(folder: Path, config: SimConfig, gpus: tuple[int, ...]) -> float:
    """GiB that other processes hold on the fullest of these GPUs."""
    others = [entry for entry in running_servers(folder) if entry.pid != os.getpid()]
    per_gpu = [sum(entry.used_gib for entry in others if gpu in entry.gpus) for gpu in gpus]
    return config.held_gib + max(per_gpu, default=0.0)
