"""Whatever state a run is in, what reads it shows what is there, or says in one line what is wrong."""

import json
from pathlib import Path

import pytest
from parts.hostile import write_hostile_run
from parts.made_run import BASELINE, MadeRun, facts, hypothesis, write_run
from typer.testing import CliRunner

from moeagent.agent.cli.app import app
from moeagent.memory.errors import LoopVersionError, MoeagentError, TapeError
from moeagent.memory.ledger import Incumbent
from moeagent.memory.lock import held
from moeagent.memory.records import ConfigChange
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.tape.lines import encode, read_tape

READERS = (
    ("log",), ("log", "--json"), ("log", "--md"), ("report",), ("report", "--html", "{root}/page.html"),
    ("status",), ("status", "--json"), ("watch",), ("replay", "--until", "99999"),
    ("replay", "--diff", "whole"),
)  # fmt: skip


def begun(root: Path, name: str) -> MadeRun:
    run = MadeRun(root, name)
    run.decide(facts())
    run.decide(Incumbent(config=BASELINE, hypothesis=None))
    run.launch(BASELINE)
    run.decide(hypothesis(1, ConfigChange(set_flags={"--x": 1}), BASELINE))
    run.load("L2", 64)
    return run


def older(root: Path) -> RunFolder:
    """As the first version wrote it: settings that are gone or spelt otherwise, no parent, less in a rung."""
    source = write_run(root, "source")
    folder = RunFolder.create(root, "older")
    last, lines = "0" * 16, []
    for entry in read_tape(source.tape).entries:
        body = json.loads(json.dumps(entry.body))
        if entry.type == "header":
            body.pop("parent")
            body["loop"] = 0
            body["settings"]["approve"] = False
            body["settings"]["gone"] = {"since": "0.2"}
            for newer in ("prompt", "policy", "notify"):
                body["settings"].pop(newer, None)
        if entry.type == "decision" and entry.kind == "launch":
            body["value"].pop("simulated", None)
            for rung in body["value"]["rungs"]:
                rung.pop("gpu", None)
        last, line = encode(last, entry.type, body)
        lines.append(line)
    folder.tape.write_bytes(b"".join(lines))
    return folder


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("states")
    write_run(runs, "whole")
    MadeRun(runs, "empty").close()
    write_hostile_run(runs)
    older(runs)
    begun(runs, "cut").close()
    torn = begun(runs, "torn").close()
    torn.tape.write_bytes(torn.tape.read_bytes()[:-20])
    damaged = write_run(runs, "damaged")
    damaged.tape.write_bytes(
        damaged.tape.read_bytes().replace(b"Chunked prefill of 2", b"Chunked prefill of 9")
    )
    return runs


def run(root: Path, *arguments: str) -> tuple[str, BaseException | None]:
    """What a command prints, and the error that it ends with."""
    words = [word.format(root=root) for word in arguments]
    done = CliRunner(env={"TERM": "dumb", "COLUMNS": "80"}).invoke(app, [*words, "--runs", str(root)])
    return done.output, done.exception


@pytest.mark.parametrize("state", ["whole", "empty", "hostile", "older", "cut", "torn"])
@pytest.mark.parametrize("reader", READERS, ids=" ".join)
def test_every_reader_shows_what_is_there(root: Path, state: str, reader: tuple[str, ...]) -> None:
    command, *options = reader
    text, error = run(root, command, state, *options)
    assert error is None, error
    assert text or (root / "page.html").stat().st_size > 1000
    assert not [c for c in text if not c.isprintable() and c != "\n"]


@pytest.mark.parametrize("reader", READERS, ids=" ".join)
def test_a_damaged_run_is_named_with_its_line_and_the_way_out(root: Path, reader: tuple[str, ...]) -> None:
    command, *options = reader
    _, error = run(root, command, "damaged", *options)
    assert isinstance(error, TapeError)
    assert "does not match its checksum" in str(error)
    assert "--salvage" in str(error)


def test_a_run_that_is_going_on_is_shown_as_such(root: Path) -> None:
    run_ = begun(root, "going")
    with held(run_.folder.path):
        assert "now: measuring L2 at concurrency 64" in run(root, "status", "going")[0]
        assert "started" in run(root, "log", "going")[0]
        for reader in (("report",), ("report", "--html", "{root}/going.html"), ("replay", "--until", "H1")):
            assert run(root, reader[0], "going", *reader[1:])[1] is None
    assert "still going, or was cut off" in (root / "going.html").read_text()


@pytest.mark.parametrize("state", ["empty", "older", "damaged"])
def test_a_strict_replay_says_why_not(root: Path, state: str) -> None:
    _, error = run(root, "replay", state)
    kind = {"empty": MoeagentError, "older": LoopVersionError, "damaged": TapeError}[state]
    assert isinstance(error, kind), error


@pytest.mark.parametrize("state", ["empty", "older", "hostile", "cut"])
def test_comparing_with_a_whole_run(root: Path, state: str) -> None:
    text, error = run(root, "compare", "whole", state)
    assert error is None or "nothing can be compared" in str(error)
    assert text


def test_lists_of_runs_and_findings_go_on_past_a_bad_one(root: Path) -> None:
    for command in (("runs",), ("runs", "--tree"), ("findings", "--rebuild")):
        text, error = run(root, *command)
        assert error is None, error
        assert "whole" in text
        assert "damaged" in text
