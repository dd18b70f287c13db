"""The version of the loop's decisions, and the data files that they depend on.

Strict replay is promised between runs of one loop version with the same data. Raise LOOP_VERSION with every
change of code after which an old tape would be answered differently.
"""

import hashlib
from importlib import resources
from importlib.metadata import version
from importlib.resources.abc import Traversable

from moeagent.memory.errors import LoopVersionError
from moeagent.memory.tape.lines import Json

LOOP_VERSION = 3

DATA_PACKAGES = ("moeagent.prompts", "moeagent.agent", "moeagent.tools")
DATA_SUFFIXES = (".toml", ".json", ".md", ".txt")
ONLY_SHOWN = ("agent/serve", "agent/show", "agent/notify", "agent/export")
"""Folders whose files decide how a run looks, and nothing in it."""


def data_hashes() -> dict[str, str]:
    """SHA-256 (16 digits) of every data file in the packages that a decision may rest on, by its path."""
    found: dict[str, str] = {}
    for package in DATA_PACKAGES:
        _collect(resources.files(package), package.removeprefix("moeagent."), found)
    return dict(sorted(found.items()))


def _collect(folder: Traversable, name: str, found: dict[str, str]) -> None:
    for item in folder.iterdir():
        path = f"{name}/{item.name}"
        if path in ONLY_SHOWN:
            continue
        if item.is_dir() and item.name != "__pycache__":
            _collect(item, path, found)
        elif item.name.endswith(DATA_SUFFIXES):
            found[path] = hashlib.sha256(item.read_bytes()).hexdigest()[:16]


def stamp() -> Json:
    """What a tape's header says about the program that recorded it."""
    return {"loop": LOOP_VERSION, "moeagent": version("moeagent"), "data": data_hashes()}


def check_stamp(header: Json) -> None:
    """Raise LoopVersionError where this program cannot promise the same decisions."""
    if header["loop"] != LOOP_VERSION:
        raise LoopVersionError(
            f"the tape was recorded by loop version {header['loop']} (moeagent {header['moeagent']}), this "
            f"is {LOOP_VERSION}: install moeagent=={header['moeagent']} for a strict replay. `moeagent log`, "
            "`moeagent report` and `moeagent replay --rethink` work with any version"
        )
    now, then = data_hashes(), header.get("data", {})
    changed = sorted(p for p in {*now, *then} if now.get(p) != then.get(p))
    if changed:
        raise LoopVersionError(
            f"{len(changed)} data files differ from the recording ({', '.join(changed[:4])}"
            f"{', ...' if len(changed) > 4 else ''}): use the moeagent {header['moeagent']} that recorded "
            "it, without changes. `moeagent log`, `report` and `replay --rethink` work all the same"
        )
