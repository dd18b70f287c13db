"""Whether the GPUs are as empty as before a launch: memory can outlive the processes for a while."""

from moeagent.tools.hosts.command import Command
from moeagent.tools.hosts.protocol import Host

ASK = Command(
    ("nvidia-smi", "--query-gpu=index,memory.used", "--format=csv,noheader,nounits"), repeatable=True
)
SLACK_MIB = 512
"""A driver's own use moves by some hundred MiB; the smallest server holds more than this."""
_TIMEOUT_S = 30.0


def parse_used(text: str) -> dict[int, int]:
    """MiB in use by GPU index; a GPU whose figure is not a number (MIG, a fault) is left out."""
    rows = (line.split(",") for line in text.splitlines())
    pairs = ((row[0].strip(), row[1].strip()) for row in rows if len(row) == 2)
    return {int(index): int(used) for index, used in pairs if index.isdigit() and used.isdigit()}


def used_memory(host: Host) -> dict[int, int]:
    """MiB in use by GPU index; empty where the host has no nvidia-smi that answers."""
    result = host.run(ASK, timeout_s=_TIMEOUT_S)
    return parse_used(result.text) if result.ok else {}


def still_held(before: dict[int, int], now: dict[int, int]) -> dict[int, int]:
    """MiB that each GPU holds beyond what it held before, where that is more than the slack."""
    return {
        gpu: now[gpu] - used for gpu, used in before.items() if gpu in now and now[gpu] - used > SLACK_MIB
    }
