"""Pure parsers of what the operating system says."""

import hashlib
import re

from moeagent.memory.records import Record

KIB_PER_GIB = 1024 * 1024


class Memory(Record):
    """Main memory in GiB."""

    total_gib: float
    available_gib: float


class Disk(Record):
    """One file system, in GiB."""

    mount: str
    total_gib: float
    free_gib: float


class Limits(Record):
    """Limits of a process that is started over this connection; None is unlimited or unknown."""

    open_files: int | None = None
    locked_kib: int | None = None


def parse_meminfo(text: str) -> Memory | None:
    """Total and available memory of /proc/meminfo; None where it is not one."""
    sizes = {name: int(size) for name, size in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    if "MemTotal" not in sizes:
        return None
    available = sizes.get("MemAvailable", sizes.get("MemFree", 0))
    return Memory(
        total_gib=round(sizes["MemTotal"] / KIB_PER_GIB, 4), available_gib=round(available / KIB_PER_GIB, 4)
    )


def parse_df(text: str) -> Disk | None:
    """The last file system of `df -Pk`."""
    rows = re.findall(r"^\S.*?\s+(\d+)\s+\d+\s+(\d+)\s+\d+%\s+(/.*)$", text, re.MULTILINE)
    if not rows:
        return None
    total, free, mount = rows[-1]
    return Disk(
        mount=mount, total_gib=round(int(total) / KIB_PER_GIB, 4), free_gib=round(int(free) / KIB_PER_GIB, 4)
    )


def parse_limits(text: str) -> Limits:
    """The lines of `ulimit -n; ulimit -l`."""
    numbers = [int(line) if line.strip().isdigit() else None for line in text.splitlines()[:2]]
    files, locked = [*numbers, None, None][:2]
    return Limits(open_files=files, locked_kib=locked)


def parse_count(text: str) -> int | None:
    """A number alone on the first line."""
    first = text.strip().splitlines()[:1]
    return int(first[0]) if first and first[0].strip().isdigit() else None


def parse_numa_nodes(text: str) -> int | None:
    """How many nodes `0-1` or `0,2-3` stands for."""
    spans = re.findall(r"(\d+)(?:-(\d+))?", text.strip())
    return sum(int(last or first) - int(first) + 1 for first, last in spans) or None


def machine_hash(identity: str, gpu_uuids: tuple[str, ...]) -> str:
    """The machine's identity as a hash, from which nothing can be read."""
    text = "\n".join((identity.strip(), *sorted(gpu_uuids)))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
