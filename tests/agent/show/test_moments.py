"""A recorded run shown to a person."""

import io
from pathlib import Path

import pytest
from parts.made_run import MadeRun, facts, write_run

from moeagent.agent.show.moments import moments, up_to
from moeagent.agent.show.seen import Seen
from moeagent.agent.show.stepping import Stepper, play
from moeagent.agent.show.text import console
from moeagent.memory.errors import InputError
from moeagent.memory.run_folder import RunFolder

EXAMPLE = RunFolder(Path(__file__).parents[3] / "runs" / "example-sm120")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return write_run(tmp_path_factory.mktemp("made"))


def stepped(folder: RunFolder, keys: str) -> str:
    """What a person sees who presses these keys."""
    tape, pressed, screen = folder.read_tape(), iter(keys), console()
    screen.file = out = io.StringIO()
    Stepper(moments(tape), Seen(folder, tape), screen, lambda: next(pressed)).run()
    return out.getvalue()


def test_times_of_the_moments_add_up_to_the_last_reading_of_the_clock() -> None:
    tape = EXAMPLE.read_tape()
    clock = [e.body["response"]["active_s"] for e in tape.entries if "active_s" in e.body.get("response", {})]
    found = moments(tape)
    assert sum(m.took_s for m in found) == pytest.approx(clock[-1], rel=0.05)
    assert sum(m.took_s for m in found if m.name == "load") > 60
    assert "clock" not in {m.name for m in found}


def test_up_to_a_line_or_the_last_word_on_an_id(made: RunFolder) -> None:
    found = moments(made.read_tape())
    assert up_to(found, "4")[-1].line == 4
    assert (up_to(found, "H3")[-1].name, up_to(found, "H3")[-1].ids) == ("verdict", ("H3",))
    assert up_to(found, "L2")[-1].name == "launch"
    with pytest.raises(InputError, match="it has L1"):
        up_to(found, "H99")


def test_playing_takes_the_recorded_time_divided_by_the_speed() -> None:
    slept: list[float] = []
    screen = console()
    screen.file = io.StringIO()
    found = up_to(moments(EXAMPLE.read_tape()), "L1")
    play(found, screen, 10.0, slept.append)
    assert sum(slept) == pytest.approx(sum(m.took_s for m in found) / 10)


def test_keys_go_forth_and_back(made: RunFolder) -> None:
    shown = stepped(made, "hhbq")
    assert [line.split()[2] for line in shown.splitlines() if line.startswith("line ")] == [
        "facts", "hypothesis", "hypothesis", "incumbent",
    ]  # fmt: skip
    assert "this is where the run begins" in stepped(made, "bq")
    assert "the recording ends here" in stepped(made, "h" * 7 + "q")
    assert "s what it saw" in stepped(made, "?q")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("hypothesis", "What is your next hypothesis"),
        ("launch", "ready after"),
        ("survey", "no decision"),
    ],
)
def test_what_the_agent_saw_before_a_decision(name: str, told: str) -> None:
    tape = EXAMPLE.read_tape()
    at = next(n for n, m in enumerate(moments(tape)) if m.name == name)
    screen = console()
    screen.file = out = io.StringIO()
    keys = iter("sq")
    Stepper(moments(tape), Seen(EXAMPLE, tape), screen, lambda: next(keys), at).run()
    assert told in out.getvalue()


def test_what_the_agent_saw_can_be_asked_in_any_order() -> None:
    tape = EXAMPLE.read_tape()
    decisions = [m.line for m in moments(tape) if m.name in ("verdict", "launch", "conclusion")]
    seen = Seen(EXAMPLE, tape)
    forth = [seen.before(line) for line in decisions]
    assert [seen.before(line) for line in reversed(decisions)] == forth[::-1]
    assert all("cannot be rebuilt" not in text for text in forth)


def test_a_run_that_was_cut_in_an_effect_is_shown_up_to_there(tmp_path: Path) -> None:
    run = MadeRun(tmp_path, "cut")
    run.decide(facts())
    run.ask("stop", {"launch": "L1"})
    last = moments(run.close().read_tape())[-1]
    assert last.told[0].plain == "stopping L1: cut off here"


def test_a_recording_that_this_version_cannot_rebuild_says_so(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "odd", hypotheses=1)
    tape = folder.read_tape()
    tape.header["settings"]["goal"]["name"] = "of another version"
    assert "cannot be rebuilt by this version" in Seen(folder, tape).before(5)
