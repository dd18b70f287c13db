"""The live view of a run that is under way."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from parts.hostile import HOSTILE
from parts.made_run import BASELINE, MadeRun, facts, hypothesis, rung, verdict
from rich.console import RenderableType

from moeagent.agent.show.follow import as_events
from moeagent.agent.show.panel import live_panel, status_screen
from moeagent.agent.show.status import Standing, standing
from moeagent.agent.show.text import console
from moeagent.memory.ledger import Incumbent
from moeagent.memory.lock import held
from moeagent.memory.pulse import Pulse, PulseFile, read_pulse
from moeagent.memory.records import ConfigChange, ServerConfig, VerdictKind


@pytest.fixture
def running(tmp_path: Path) -> Iterator[MadeRun]:
    """H2 is being measured: two rungs are done, the third is filling up."""
    run = MadeRun(tmp_path, "live")
    run.decide(facts())
    run.decide(Incumbent(config=BASELINE, hypothesis=None))
    run.ask("start", {"launch": "L1"}, {"outcome": "ready", "after_s": 240.0})
    for concurrency in (1, 10, 64):
        run.load("L1", concurrency, rung(concurrency))
    run.launch(BASELINE)
    first = ConfigChange(set_flags={"--x": 1})
    run.decide(hypothesis(1, first, BASELINE))
    run.launch(BASELINE.apply(first), "H1", factor=1.08)
    run.decide(verdict(1, VerdictKind.IMPROVED, 0.08))
    run.decide(Incumbent(config=BASELINE.apply(first), hypothesis="H1"))
    run.decide(hypothesis(2, ConfigChange(set_flags={"--y": 1}), BASELINE))
    run.ask("start", {"launch": "L3"}, {"outcome": "ready", "after_s": 240.0})
    for concurrency in (1, 10):
        run.load("L3", concurrency, rung(concurrency))
    run.load("L3", 64)
    with held(run.folder.path):
        yield run


def beat(run: MadeRun, **told: object) -> None:
    pulse = Pulse.model_validate({"tape_bytes": run.folder.tape.stat().st_size, **told})
    PulseFile(run.folder.path).write(pulse)


def drawn(drawing: RenderableType, width: int = 100) -> str:
    screen = console()
    screen.width, screen.file = width, io.StringIO()
    screen.print(drawing)
    return screen.file.getvalue()


def later(found: Standing, seconds: float) -> float:
    assert found.step is not None
    return found.step.began_at + seconds


def test_the_step_with_its_time_and_the_rungs_of_its_launch(running: MadeRun) -> None:
    beat(running, text="32 of 128 requests", done=32, total=128, rate=2900.0)
    found = standing(running.folder)
    text = drawn(status_screen(found, later(found, 12.0)), 200)
    assert "measuring L3 at concurrency 64, 128 requests, 12.0 s of about 30.0 s" in text
    assert "L3 for H2:  1: 86.4  10: 778  64: now  256: -" in text
    assert "25%, 32 of 128 requests, 2,900 tok/s" in text
    assert "2 of 10 experiments, 2 of 40 launches" in text
    assert text.index("H1 Chunked") < text.index("H2 Chunked") < text.index("best so far: H1")


def test_the_panel_of_the_own_terminal_is_short(running: MadeRun) -> None:
    found = standing(running.folder)
    text = drawn(live_panel(found, later(found, 15.0)))
    assert "50%, by the time that it took before" in text
    assert "best so far 5,818 tok/s at 256; H1: +8.0% [+4.0%, +12.0%]" in text
    assert len(text.splitlines()) < 10


def test_the_end_of_the_log_while_a_server_starts(running: MadeRun) -> None:
    running.ask("start", {"launch": "L4"})
    beat(running, text="load Loading safetensors checkpoint shards: 33%")
    found = standing(running.folder)
    text = drawn(status_screen(found, later(found, 60.0)))
    assert "starting L4, 1 min 00 s of about 4 min 00 s" in text
    assert "log: load Loading safetensors checkpoint shards: 33%" in text


@pytest.mark.parametrize("width", [80, 200])
def test_hostile_pulses_are_data_at_every_width(running: MadeRun, width: int) -> None:
    running.ask("start", {"launch": "L4"})
    beat(running, text=" ".join(HOSTILE.values()))
    found = standing(running.folder)
    for drawing in (status_screen(found, later(found, 1.0)), live_panel(found, later(found, 1.0))):
        text = drawn(drawing, width)
        assert not [c for c in text if not c.isprintable() and c != "\n"]
        assert max(map(len, text.splitlines())) <= width
        assert "[bold red]not markup" in text or "more characters" in text


@pytest.mark.parametrize("written", [b"", b"{", b'{"tape_bytes": 1}', b'{"other": 1}', b"\xff"])
def test_a_pulse_that_is_old_or_damaged_is_no_pulse(running: MadeRun, written: bytes) -> None:
    (running.folder.path / "live.json").write_bytes(written)
    assert read_pulse(running.folder.path, running.folder.tape.stat().st_size) is None
    assert standing(running.folder).step is not None


def test_events_say_what_is_under_way(running: MadeRun) -> None:
    beat(running, text="32 of 128 requests", done=32, total=128, rate=2900.0)
    lines: list[str] = []
    as_events(lines.append)(standing(running.folder), [])
    step = json.loads(lines[-1])["step"]
    assert (step["launch"], step["hypothesis"], step["concurrency"]) == ("L3", "H2", 64)
    assert [r["concurrency"] for r in step["measured"]] == [1, 10]
    assert step["expected_s"] == 30.0
    assert step["progress"]["done"] == 32


def test_limits_are_those_that_hold_now(tmp_path: Path) -> None:
    run = MadeRun(tmp_path, "raised")
    run.decide(facts())
    folder = run.close()
    from moeagent.memory.tape.tape import Tape

    Tape.resume(folder.tape, {"amend": {"limits": {"experiments": 99}}}).close()
    assert standing(folder).budget["experiments"] == (0, 99)


def test_nothing_is_expected_of_a_first_step(tmp_path: Path) -> None:
    run = MadeRun(tmp_path, "first")
    run.decide(facts())
    run.ask("start", {"launch": "L1", "config": ServerConfig(engine="sglang").model_dump(mode="json")})
    with held(run.folder.path):
        found = standing(run.folder)
        assert "starting L1, 5.0 s\n" in drawn(status_screen(found, later(found, 5.0)))
        assert "nothing is measured yet" in drawn(live_panel(found, later(found, 5.0)))
