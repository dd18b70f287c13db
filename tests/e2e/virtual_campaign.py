"""A campaign in virtual time with a tape on disk, in processes that are killed at a chosen tape event.

The parent runs the undisturbed campaign and then forks for each run, so that a kill is a real SIGKILL of a
warm process. The world outlives a kill, as a real host does: each launch lies in a file of its own.
"""

import json
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

from moeagent.agent.campaign import build_loop
from moeagent.agent.drive import drive
from moeagent.agent.events import Events
from moeagent.agent.interrupt import StopRequest
from moeagent.agent.loop import Loop, SurveyFacts
from moeagent.agent.settings import (
    BaselineSettings,
    CampaignSettings,
    EngineSettings,
    LimitSettings,
    LlmSettings,
    OwnIdea,
)
from moeagent.agent.state import State
from moeagent.agent.steps import NODES
from moeagent.agent.steps.measure import ladder
from moeagent.agent.worlds.bench import Bench, Trial
from moeagent.agent.worlds.virtual_bench import VirtualBench
from moeagent.memory.records import ServerConfig
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.tape.lines import TIMES, Entry, EntryType, Json, encode, read_tape
from moeagent.memory.tape.tape import Tape, Writer
from moeagent.tools.sim.families import draw_worlds

Mode = Literal["after", "torn"]
EXPERIMENTS, LAUNCHES = 6, 20
(WORLD,) = draw_worlds(1, seed=3)
LADDER = (8, 64)
"""Two rungs only: ranking the ideas predicts each rung of each."""


OWN = (
    OwnIdea(statement="Smaller prefill chunks", flags={"--chunked-prefill-size": 2048}),
    OwnIdea(statement="Bolder admission", flags={"--schedule-conservativeness": 0.3}),
    OwnIdea(statement="More decode steps a turn", flags={"--num-continuous-decode-steps": 4}),
)
"""Half of the experiments are the engineer's: they cost no ranking, which takes most of a campaign's time."""


class Killer(Writer):
    """Dies by kill -9 at the tape's n-th line: after it is synced, or with half of it written."""

    at = 0
    mode: Mode = "after"

    def append(self, type_: EntryType, body: Json, *, newline_first: bool = False) -> Entry:
        """Write the line, or die."""
        last = self._line_no + 1 == self.at
        if last and self.mode == "torn":
            line = encode(self._sum, type_, body)[1]
            os.write(self._fd, line[: len(line) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        entry = super().append(type_, body, newline_first=newline_first)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return entry


class SurvivingBench(VirtualBench):
    """Servers that outlive the process that started them."""

    def __init__(self, bench: Bench, folder: Path, ladder: Callable[[], tuple[int, ...]]) -> None:
        super().__init__(bench, LlmSettings(), ladder)
        self._folder = folder
        folder.mkdir(exist_ok=True)
        for file in sorted(folder.iterdir(), key=lambda f: int(f.name[1:])):
            trial: Trial = pickle.loads(file.read_bytes())
            self._trials[file.name] = trial
            bench.trials.append(trial)

    def start(self, launch: str, config: ServerConfig, keep: Callable[[str], str]) -> Json:
        """Adopt the launch where there is one, as servers are on a real host."""
        known = self._trials.get(launch)
        if known is None:
            answer = super().start(launch, config, keep)
            (self._folder / launch).write_bytes(pickle.dumps(self._trials[launch]))
            return answer
        bench, trials = self._bench, self._trials
        self._bench, self._trials = _Recorded(bench, known), {}
        try:
            return super().start(launch, config, keep)
        finally:
            self._bench, self._trials = bench, trials


class _Recorded(Bench):
    """Answers a launch with the one that was made."""

    def __init__(self, bench: Bench, trial: Trial) -> None:
        super().__init__(bench.world, bench.launches)
        self._trial = trial

    def launch(self, config: ServerConfig, **asked: Any) -> Trial:
        """The launch that was made."""
        assert config == self._trial.config
        return self._trial


def campaign(folder: RunFolder, tape: Tape) -> Loop:
    """A loop on the world, on this tape."""
    bench = Bench(WORLD, LAUNCHES)
    baseline = bench.baseline
    settings = CampaignSettings(
        engine=EngineSettings(name=baseline.engine),
        model=bench.facts().model.path,
        baseline=BaselineSettings(flags=dict(baseline.flags), env=dict(baseline.env), launches=2),
        workload=bench.workload.model_copy(update={"ladder": LADDER}),
        limits=LimitSettings(experiments=EXPERIMENTS, launches=LAUNCHES, hours=1e6),
        idea=OWN,
    )
    made: list[Loop] = []
    virtual = SurvivingBench(bench, folder.path / "world", lambda: ladder(made[0]))
    made.append(build_loop(settings, tape, folder, virtual, StopRequest(), Events()))
    return made[0]


def run(folder: RunFolder, *, kill_at: int = 0, mode: Mode = "after") -> None:
    """Begin a campaign; with `kill_at`, die there."""
    writer = Killer.create(folder.tape)
    writer.at, writer.mode = kill_at, mode
    writer.append("header", {"format": 1, "run": folder.id})
    go_on(folder, Tape(None, writer))


def go_on(folder: RunFolder, tape: Tape) -> None:
    """Drive the loop to its end."""
    loop = campaign(folder, tape)
    drive(loop, NODES | {"survey": _surveyed})
    tape.close()


def _surveyed(loop: Loop, state: State) -> State:
    facts = WORLD.facts()
    loop.facts = SurveyFacts(host=facts.host, engine=facts.engine, model=facts.model)
    loop.predictor.learn(facts.host, facts.model)
    return {}


def what_happened(folder: RunFolder) -> list[tuple[str, Json]]:
    """The tape without its markers, its times, and requests whose effect was cut."""
    entries = [e for e in read_tape(folder.tape).entries[1:] if e.type != "marker"]
    following = [*entries[1:], None]
    return [
        (entry.type, {name: value for name, value in entry.body.items() if name not in TIMES})
        for entry, after in zip(entries, following, strict=True)
        if entry.type != "request" or (after is not None and after.type == "response")
    ]


def forked(work: Callable[[], None]) -> int:
    """Run in a child; its exit status as `waitpid` gives it."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 - the child has nobody else to tell
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def survives(root: Path, undisturbed: RunFolder, point: int, mode: Mode) -> str:
    """Kill at this point, resume, compare; empty, or what is wrong."""
    folder = RunFolder.create(root, f"{mode}-{point}")
    status = forked(lambda: run(folder, kill_at=point, mode=mode))
    if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
        return f"was not killed: status {status}"
    if point == 1 and mode == "torn":
        return ""  # Without a header there is no run yet: nothing was started.
    if forked(lambda: go_on(folder, Tape.resume(folder.tape, {}))) != 0:
        return "the resume failed"
    if what_happened(folder) != what_happened(undisturbed):
        return "the log differs from the undisturbed run's"
    worlds = [sorted(f.name for f in (f.path / "world").iterdir()) for f in (folder, undisturbed)]
    return "" if worlds[0] == worlds[1] else f"launches {worlds[0]} in place of {worlds[1]}"


def points(lines: int, every: int) -> Iterator[tuple[int, Mode]]:
    """Each tape event, or every n-th, in both modes."""
    for point in range(1, lines, every):
        yield point, "after"
        yield point, "torn"


def main(root: Path, every: int) -> None:
    """Print tried, passed and failures as JSON."""
    undisturbed = RunFolder.create(root, "undisturbed")
    # In this process, so that everything that is imported or read on first use is there for the children.
    run(undisturbed)
    lines = read_tape(undisturbed.tape).entries[-1].line_no
    tried = list(points(lines, every))
    with get_context("fork").Pool(os.cpu_count()) as pool:
        wrongs = pool.starmap(partial(survives, root, undisturbed), tried, chunksize=1)
    failures = {f"{p} {m}": wrong for (p, m), wrong in zip(tried, wrongs, strict=True) if wrong}
    kinds = [b["kind"] for t, b in what_happened(undisturbed) if t == "decision"]
    print(json.dumps({"lines": lines, "tried": len(tried), "failures": failures, "decisions": kinds}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
