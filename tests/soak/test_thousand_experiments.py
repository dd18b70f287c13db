"""A thousand launches in virtual time: memory and open files stay flat, and what the loop itself costs."""

import os
import time
from pathlib import Path

import pytest

from moeagent.agent.worlds.bench import Bench
from moeagent.agent.worlds.loop_policy import LoopPolicy
from moeagent.tools.sim.families import draw_worlds

LAUNCHES = 25
"""Of one campaign; its ideas end before its launches do."""
WARM_LAUNCHES = 100
"""Until then everything is loaded that is loaded on first use."""
GROWTH_MIB = 64.0


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.timeout(3600)
def test_memory_and_open_files_stay_flat(full: bool) -> None:
    if not full:
        pytest.skip("minutes long: `make soak` runs it")
    launches, warm = 0, (0.0, 0)
    spent_s = 0.0
    for world in draw_worlds(1000, 1):
        bench = Bench(world, LAUNCHES)
        began = time.process_time()
        LoopPolicy().run(bench, 0)
        spent_s += time.process_time() - began
        launches += len(bench.trials)
        if launches >= WARM_LAUNCHES and not warm[1]:
            warm = (resident_mib(), open_files())
        if launches >= 1000:
            break
    grown = resident_mib() - warm[0]
    print(
        f"\n{launches} launches in virtual time: {spent_s / launches * 1e3:.0f} ms of CPU each, "
        f"memory {warm[0]:.0f} MiB after {WARM_LAUNCHES} launches and {grown:+.1f} MiB since, "
        f"{open_files()} open files, {warm[1]} then"
    )
    assert launches >= 1000
    assert grown < GROWTH_MIB
    assert open_files() <= warm[1]
