"""From nvidia-smi's lines to a rung's figures."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from moeagent.memory.records import ClientHealth, Rung
from moeagent.tools.load.gpu_figures import gpu_samples, kept_samples, recompute_samples, with_gpus
from moeagent.tools.load.sampling import Samples

FILES = Path(__file__).parents[2] / "fixtures" / "load" / "gpu"
H200_WINDOW = (1795996210.2576094, 1795996221.2152293)
START = datetime(2026, 11, 29, 23, 0, tzinfo=UTC)
WINDOW = (START.timestamp() + 10, START.timestamp() + 20)
CAP, HOT = "0x0000000000000004", "0x0000000000000044"


def line(second: float, gpu: int, watts: str, reasons: str = CAP) -> str:
    stamp = (START + timedelta(seconds=second)).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
    return f"{stamp}, {gpu}, {watts}, {1500 + gpu}, 3201, 97, {1000 + second:.0f}, 64, {reasons}\n"


def text(hot: range = range(0), watts: str = "400.00") -> str:
    """Two GPUs, thirty seconds; before and after the rung they draw 80 W."""
    idle = {second: "80.00" for second in range(31) if not 10 <= second <= 20}
    return "".join(
        line(second, gpu, idle.get(second, watts), HOT if second in hot else CAP)
        for second in range(31)
        for gpu in range(2)
    )


def rung(**fields: object) -> Rung:
    made = Rung(
        concurrency=8, completed=80, failed=0, duration_s=10.0, output_tok_s=200.0, total_tok_s=400.0,
        client=ClientHealth(cpu_s=1.0, loop_lag_ms=0.1, valid=True),
    )  # fmt: skip
    return made.model_copy(update=fields)


def test_only_the_window_of_the_rung_counts() -> None:
    found = gpu_samples(text(), WINDOW)

    assert found is not None
    assert (found.moments, found.power_w, found.power_max_w) == (11, 800.0, 800.0)
    assert [gpu.power_w for gpu in found.gpus] == [400.0, 400.0]
    assert (found.gpus[1].sm_mhz, found.gpus[1].mem_mhz, found.gpus[1].use_percent) == (1501, 3201, 97)
    assert found.gpus[0].memory_mib == 1020
    assert found.gpus[0].held_by == {"power cap": 1.0}
    assert found.throttled == ""


def test_a_real_h200_at_its_power_cap_is_noted_and_not_spoilt() -> None:
    printed = (FILES / "h200-256-streams.csv").read_text()
    found = gpu_samples(printed, H200_WINDOW)

    assert found is not None
    (gpu,) = found.gpus
    assert (found.moments, found.power_w, found.power_max_w) == (11, 600.98, 654.7)
    assert (gpu.sm_mhz, gpu.sm_mhz_min, gpu.mem_mhz) == (1956.82, 1740.0, 3201.0)
    assert (gpu.memory_mib, gpu.celsius, gpu.use_percent) == (132611.0, 52.0, 94.0)
    assert gpu.held_by == {"power cap": 0.1818}
    assert found.throttled == ""


def test_energy_is_power_times_the_window() -> None:
    measured = with_gpus(rung(), gpu_samples(text(), WINDOW))

    assert measured.energy_j == 8000.0
    assert measured.energy_per_token_j == 4.0
    assert measured.usable


def test_a_gpu_that_hides_its_power_leaves_the_energy_unknown() -> None:
    measured = with_gpus(rung(), gpu_samples(text(watts="[N/A]"), WINDOW))

    assert measured.gpu is not None
    assert (measured.gpu.power_w, measured.energy_j, measured.energy_per_token_j) == (None, None, None)
    assert measured.gpu.gpus[0].sm_mhz == 1500


def test_a_slowdown_by_heat_spoils_the_rung_and_says_why() -> None:
    measured = with_gpus(rung(invalid="client late"), gpu_samples(text(hot=range(12, 16)), WINDOW))

    why = "throttled: GPU 0: hardware thermal slowdown; GPU 1: hardware thermal slowdown"
    assert measured.throttled == why
    assert measured.invalid == f"client late; {why}"
    assert not measured.usable


def test_a_slowdown_outside_the_window_or_for_a_blink_spoils_nothing() -> None:
    long = (WINDOW[0], WINDOW[0] + 300)
    lines = "".join(line(10 + second, 0, "400.00", HOT if second == 7 else CAP) for second in range(300))

    assert gpu_samples(text(hot=range(21, 30)), WINDOW).throttled == ""
    assert gpu_samples(lines, long).throttled == ""


@pytest.mark.parametrize("cut", [0, 3])
def test_samples_of_a_part_of_the_window_are_none(cut: int) -> None:
    part = "".join(line(10 + second, 0, "400.00") for second in range(cut))

    assert gpu_samples(part, WINDOW) is None
    assert with_gpus(rung(), gpu_samples(part, WINDOW)) == rung()


def test_the_host_s_clock_is_allowed_for_and_the_figures_can_be_computed_again() -> None:
    kept: dict[str, bytes] = {}

    def keep(data: bytes) -> str:
        kept["name"] = data
        return "name"

    by_load = (WINDOW[0] - 3600, WINDOW[1] - 3600)
    found = kept_samples(Samples(text(), ahead_s=3600.0), by_load, keep)

    assert found is not None
    assert (found.power_w, found.raw) == (800.0, "name")
    again = recompute_samples(kept["name"])
    assert again is not None
    assert again.model_copy(update={"raw": "name"}) == found
