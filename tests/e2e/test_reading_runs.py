"""The commands that read runs, as a user calls them."""

import csv
import io
import json
from pathlib import Path

import pytest
from e2e.command import moeagent, moeagent_json, start
from parts.hostile import write_hostile_run
from parts.made_run import BASELINE, MadeRun, conclusion, facts, hypothesis, verdict, write_run

from moeagent.memory.ledger import Incumbent
from moeagent.memory.lock import held
from moeagent.memory.records import ConfigChange, VerdictKind


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs that share a host, one of another model, and one with hostile text."""
    made = tmp_path_factory.mktemp("reading")
    runs = made / "runs"
    write_run(runs, "first")
    write_run(runs, "second", hypotheses=2)
    write_run(runs, "other", survey=facts(model="Kimi"))
    write_hostile_run(runs)
    moeagent(made, "findings", "--rebuild")
    return made


def test_findings_in_every_format(folder: Path) -> None:
    text = moeagent(folder, "findings", "chunked", "--verdict", "blocked", "--model", "glm").stdout
    assert "oom" not in text
    assert "--chunked-prefill-size 3072" in text.replace("\n", " ")
    rows = moeagent_json(folder, "findings", "--flag", "chunked-prefill-size", "--limit", "100")["findings"]
    assert {row["run"] for row in rows} == {"first", "second", "other"}
    assert rows[0]["change"]["set_flags"]
    table = list(csv.DictReader(io.StringIO(moeagent(folder, "findings", "--export", "csv").stdout)))
    exported = json.loads(moeagent(folder, "findings", "--export", "json").stdout)["findings"]
    assert len(table) == len(exported) == 13
    assert {row["gain"] for row in table if row["verdict"] != "improved"} == {""}


def test_findings_of_an_unknown_verdict_are_refused(folder: Path) -> None:
    done = moeagent(folder, "findings", "--verdict", "blokked", code=2)
    assert "did you mean 'blocked'?" in done.stderr


def test_compare_shows_what_is_comparable_and_says_why_not(folder: Path) -> None:
    text = moeagent(folder, "compare", "first", "second", "other").stdout
    assert "not comparable: other: another model: Kimi, not GLM-5" in text
    found = moeagent_json(folder, "compare", "first:H2", "second:H2")
    assert [c["configurations"][0]["label"] for c in found["compared"]] == ["H2", "H2"]
    done = moeagent(folder, "compare", "first", "other", code=2)
    assert "nothing can be compared with first" in done.stderr
    assert "name at least two runs" in moeagent(folder, "compare", "first", code=2).stderr
    assert "has no 'H77'" in moeagent(folder, "compare", "first:H77", "second", code=2).stderr


def test_note_and_review_are_in_the_report(folder: Path) -> None:
    moeagent(folder, "note", "second", "H2", "try after the driver update")
    done = moeagent(folder, "review", "second", "H2", "--reject", "another job ran <b>")
    assert "later runs will not use it" in done.stdout
    assert "either --confirm or --reject" in moeagent(folder, "review", "second", "H2", code=2).stderr
    moeagent(folder, "report", "second", "--html", "second.html")
    page = (folder / "second.html").read_text()
    assert "try after the driver update" in page
    assert "another job ran &lt;b&gt;" in page
    assert "rejected by a reviewer" in moeagent(folder, "findings", "--verdict", "regressed").stdout


def test_status_says_what_is_spent_and_what_is_best(folder: Path) -> None:
    found = moeagent_json(folder, "status", "first")
    assert found["best"] == "H1"
    assert found["budget"]["experiments"] == {"used": 5, "limit": 10}
    assert found["doing"] == ""
    text = moeagent(folder, "status", "first").stdout
    assert "SIMULATED" in text
    assert "5 of 10 experiments" in text


def test_watch_follows_a_run_to_its_end(tmp_path: Path) -> None:
    run = MadeRun(tmp_path / "runs", "live")
    run.decide(facts())
    best = Incumbent(config=BASELINE, hypothesis=None)
    run.decide(best)
    with held(run.folder.path):
        watching = start(tmp_path, "watch", "live")
        assert watching.stdout is not None
        seen = [watching.stdout.readline() for _ in range(4)]
        assert "SIMULATED" in seen[0]
        run.decide(hypothesis(1, ConfigChange(set_flags={"--x": 1}), BASELINE))
        assert any("H1" in line for line in iter(watching.stdout.readline, ""))
        assert moeagent_json(tmp_path, "status", "live")["status"] == "under way"
        run.decide(verdict(1, VerdictKind.REGRESSED, -0.1))
        run.decide(conclusion(best, 0.0, 1))
        rest, _ = watching.communicate(timeout=60)
    run.close()
    assert watching.returncode == 0
    assert "regressed" in rest
    assert "finished: the limit of 1 experiments is reached" in rest
    printed = moeagent(tmp_path, "watch", "live", "--json-events").stdout
    events = [json.loads(line) for line in printed.splitlines()]
    assert [e["kind"] for e in events if "kind" in e][-1] == "conclusion"


def test_a_run_that_was_cut_is_told_from_one_that_is_under_way(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs", "cut", ended=False)
    assert moeagent_json(tmp_path, "status", "cut")["status"] == "cut off"
    assert "moeagent resume cut goes on" in moeagent(tmp_path, "status", "cut").stdout
    assert "no process works on this run" in moeagent(tmp_path, "watch", "cut").stdout
    with held(folder.path):
        assert moeagent_json(tmp_path, "status", "cut")["status"] == "under way"


@pytest.mark.parametrize("columns", ["80", "200"])
@pytest.mark.parametrize(
    "command",
    [("log", "hostile"), ("log", "hostile", "H1"), ("report", "hostile"), ("status", "hostile"),
     ("watch", "hostile"), ("findings",), ("compare", "hostile", "first")],
)  # fmt: skip
def test_hostile_text_cannot_command_the_terminal(
    folder: Path, command: tuple[str, ...], columns: str
) -> None:
    shown = moeagent(folder, *command, COLUMNS=columns, TERM="dumb").stdout
    assert not [c for c in shown if not c.isprintable() and c != "\n"]


def test_log_shows_the_last_hypotheses_and_says_what_it_left_out(folder: Path) -> None:
    text = moeagent(folder, "log", "first", "--last", "2").stdout
    assert "3 earlier hypotheses are not shown" in text
    assert "KiB keeps" in text
    assert " H3 " not in text
    assert " H3 " in moeagent(folder, "log", "first", "--last", "0").stdout


def test_log_as_markdown_keeps_the_filter(folder: Path) -> None:
    text = moeagent(folder, "log", "first", "--md", "--verdict", "blocked").stdout
    rows = [line for line in text.splitlines() if line.startswith("| H")]
    assert [row.split(" | ")[0] for row in rows] == ["| H3"]
    assert "SIMULATED" in text


@pytest.mark.parametrize("command", ["log", "report", "status", "watch"])
def test_a_run_of_another_version_is_named_as_one(tmp_path: Path, command: str) -> None:
    run = MadeRun(tmp_path / "runs", "newer")
    run.decide(facts())
    run.decide_raw("insight", {"text": "from another version"})
    run.close()
    done = moeagent(tmp_path, command, "newer", code=8)
    assert "line 3 holds a decision 'insight' that this version does not know" in done.stderr
    assert "damaged" in moeagent(tmp_path, "runs").stdout


def test_html_report_to_a_place_that_cannot_be_written_is_one_clear_line(folder: Path) -> None:
    done = moeagent(folder, "report", "first", "--html", "no/such/folder/x.html", code=2)
    assert done.stderr.startswith("moeagent: cannot write no/such/folder/x.html")
    assert done.stderr.count("\n") == 1
