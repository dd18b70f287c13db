"""From a GPU's name or a host's facts to the machine that predictions are made for."""

import re

from moeagent.memory.errors import InputError
from moeagent.memory.records import HostFacts
from moeagent.tools.predict import tables
from moeagent.tools.predict.records import Machine, Unknown
from moeagent.tools.predict.tables.schema import GpuSpec

_COUNTED = re.compile(r"^\s*(?:(\d+)\s*[xX*]\s*)?(.+?)\s*$")
_SIZE = re.compile(r"(\d+)\s*G(?:i?B)\b", re.IGNORECASE)
_NVLINK = re.compile(r"\bNV\d+\b")


def find_gpu(name: str) -> GpuSpec | None:
    """The table's entry for a GPU name as nvidia-smi or a person writes it."""
    words = set(re.split(r"[^a-z0-9]+", name.lower()))
    return next((g for g in tables.gpus() if any(set(group) <= words for group in g.match)), None)


def machine_from_name(text: str) -> Machine:
    """A machine from "8x RTX PRO 6000".

    A GPU that is not in the table is taken with the memory in its name ("4x Foo 96GB"), for memory alone.
    Raises InputError when there is none.
    """
    found = _COUNTED.match(text)
    count, name = (int(found[1] or 1), found[2]) if found else (1, text)
    spec = find_gpu(name)
    if spec is None:
        size = _SIZE.search(name)
        if size is None:
            known = ", ".join(g.name for g in tables.gpus())
            raise InputError(
                f'GPU "{name}" is not in the table: write one of {known}, or its memory ("Foo 96GB")'
            )
        note = f"{name} is not in the table of GPUs: memory is predicted, speed is not"
        return Machine(
            gpu_name=name, gpu_count=count, memory_mib=int(size[1]) * 1024, fabric="pcie4", notes=(note,)
        )
    return Machine(
        gpu_name=spec.name, gpu_count=count, memory_mib=spec.memory_mib, spec=spec, fabric=spec.fabric
    )


def machine_from_facts(facts: HostFacts) -> Machine | Unknown:
    """The machine of a surveyed host; Unknown when neither GPUs nor CPU cores are known."""
    if not facts.gpus:
        if facts.cpu_cores is None:
            return Unknown(
                what="the machine", why=f"the survey of {facts.name} shows neither GPUs nor CPU cores"
            )
        return Machine(
            gpu_name=None, memory_mib=round((facts.ram_gib or 0) * 1024), cpu_cores=facts.cpu_cores
        )
    name = facts.gpus[0].name
    spec = find_gpu(name)
    fabric, notes = _fabric(facts, spec)
    if spec is None:
        notes = (*notes, f"{name} is not in the table of GPUs: memory is predicted, speed is not")
    if len({g.name for g in facts.gpus}) > 1:
        notes = (*notes, f"the GPUs differ; all are taken for {name}")
    return Machine(
        gpu_name=name,
        gpu_count=len(facts.gpus),
        memory_mib=min(g.memory_mib for g in facts.gpus),
        used_mib=max(g.memory_used_mib for g in facts.gpus),
        spec=spec,
        fabric=fabric,
        cpu_cores=facts.cpu_cores or 0,
        notes=notes,
    )


def _fabric(facts: HostFacts, spec: GpuSpec | None) -> tuple[str, tuple[str, ...]]:
    """The fabric by the topology matrix where there is one, else the card's usual one."""
    usual = spec.fabric if spec else "pcie4"
    if len(facts.gpus) < 2 or not facts.topology:
        return usual, ()
    if _NVLINK.search(facts.topology):
        return (usual, ()) if "nvlink" in usual else ("nvlink3", (f"NVLink on {facts.gpus[0].name}",))
    if "pcie" in usual:
        return usual, ()
    return "pcie5", ("the topology shows no NVLink: PCIe figures are used",)
