"""The measure step over a server whose GPUs grow hot."""

from pathlib import Path
from typing import cast

import pytest

from moeagent.agent.campaign import build_loop
from moeagent.agent.effects import Effects, KeepRaw, KeepText
from moeagent.agent.events import Events
from moeagent.agent.interrupt import StopRequest
from moeagent.agent.loop import Loop, OpenLaunch, SurveyFacts
from moeagent.agent.settings import CampaignSettings, HostSettings, OutputCheckSettings
from moeagent.agent.steps.baseline import check_goal
from moeagent.agent.steps.measure import measure
from moeagent.agent.steps.record import check_measure
from moeagent.memory.errors import HostError, InputError
from moeagent.memory.ledger import Incumbent
from moeagent.memory.records import (
    ClientHealth,
    EngineFacts,
    Goal,
    Gpu,
    GpuLoad,
    GpuSamples,
    HostFacts,
    LaunchOutcome,
    ModelFacts,
    Rung,
    ServerConfig,
    Workload,
)
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.tape.lines import Json
from moeagent.memory.tape.tape import Tape
from moeagent.tools.load.gpu_figures import with_gpus

BASELINE = ServerConfig(engine="vllm")
HOT = "throttled: GPU 0: hardware thermal slowdown"


class HotServer:
    """A server that answers well on GPUs that are slowed down for the first rungs of load."""

    def __init__(self, hot: int, watts: float | None = 500.0) -> None:
        self.rungs = 0
        self._hot = hot
        self._watts = watts

    def load(self, launch: str, config: ServerConfig, spec: Json, keep: KeepRaw) -> Json:
        self.rungs += 1
        rung = Rung(
            concurrency=spec["concurrency"], completed=8, failed=0, duration_s=10.0, output_tok_s=100.0,
            total_tok_s=200.0, client=ClientHealth(cpu_s=1.0, loop_lag_ms=0.1, valid=True),
        )  # fmt: skip
        why = HOT if self.rungs <= self._hot else ""
        sampled = GpuSamples(moments=10, gpus=(GpuLoad(gpu=0),), power_w=self._watts, throttled=why)
        return {"rung": with_gpus(rung, sampled).model_dump(mode="json"), "alive": True}

    def first_prompt(self, launch: str, config: ServerConfig, words: int) -> Json:
        return {"problem": ""}

    def stop(self, launch: str, keep: KeepText) -> Json:
        return {"verified": True, "log": None, "problems": []}


def measured(path: Path, server: HotServer, goal: Goal | None = None, gpus: tuple[Gpu, ...] = ()) -> Loop:
    """The loop after the first launch was measured at one concurrency."""
    settings = CampaignSettings(
        model="/m",
        goal=goal or Goal(),
        workload=Workload(ladder=(8,)),
        host=HostSettings(target="box"),
        output_check=OutputCheckSettings(enabled=False),
    )
    folder = RunFolder.create(path, "run")
    tape = Tape.record(folder.tape, {"run": "run"})
    loop = build_loop(settings, tape, folder, cast(Effects, server), StopRequest(), Events())
    loop.facts = SurveyFacts(
        host=HostFacts(name="box", machine_id="m", gpus=gpus),
        engine=EngineFacts(engine="vllm", version="0.25.1"),
        model=ModelFacts(path="/m"),
    )
    loop.ledger.add(Incumbent(config=BASELINE, hypothesis=None))
    loop.words = 8
    loop.open = OpenLaunch("L1", None, BASELINE)
    measure(loop, {})
    return loop


class DyingServer(HotServer):
    """A server that is ready and dies of its first long prefill."""

    def first_prompt(self, launch: str, config: ServerConfig, words: int) -> Json:
        return {"problem": f"disconnected after {words} words"}


def test_a_server_that_dies_of_its_first_long_prompt_is_not_loaded(tmp_path: Path) -> None:
    server = DyingServer(0)
    loop = measured(tmp_path, server)

    assert server.rungs == 0
    assert loop.launching.outcome is LaunchOutcome.DIED_SERVING
    assert "disconnected after 8 words" in loop.ledger.notes[-1].text


@pytest.mark.parametrize(("hot", "rungs", "mark"), [(0, 1, ""), (1, 2, ""), (2, 2, HOT), (9, 2, HOT)])
def test_a_throttled_rung_is_measured_again_once(tmp_path: Path, hot: int, rungs: int, mark: str) -> None:
    server = HotServer(hot)
    loop = measured(tmp_path, server)

    assert server.rungs == rungs
    (kept,) = loop.ledger.launches[0].rungs
    assert (kept.throttled, kept.usable) == (mark, not mark)
    assert kept.energy_j == 5000.0


def test_a_goal_by_energy_ends_the_run_when_the_power_is_not_told(tmp_path: Path) -> None:
    goal = Goal(name="min-cost")

    with pytest.raises(HostError, match="price_per_hour"):
        check_measure(measured(tmp_path / "dark", HotServer(0, watts=None), goal))
    check_measure(measured(tmp_path / "told", HotServer(0), goal))
    check_measure(measured(tmp_path / "other", HotServer(0, watts=None)))


def test_a_goal_by_energy_is_refused_where_no_gpu_has_a_power(tmp_path: Path) -> None:
    goal = Goal(name="min-cost")
    gpu = Gpu(index=0, name="NVIDIA H200", memory_mib=143771, power_limit_w=700.0)

    with pytest.raises(InputError, match="price_per_hour"):
        check_goal(measured(tmp_path / "cpu", HotServer(0), goal))
    check_goal(measured(tmp_path / "gpu", HotServer(0), goal, (gpu,)))
