"""Requested against effective, for people and for programs."""

import json

import typer
from parts.made_run import BASELINE, MadeRun, facts, hypothesis
from typer.testing import CliRunner

from moeagent.agent.cli.log import command
from moeagent.memory.ledger import Incumbent
from moeagent.memory.records import ConfigChange, Launch, LaunchOutcome

app = typer.Typer()
app.command()(command)


def made(root):
    """A hypothesis whose server says that one setting is another, and says nothing of a second one."""
    run = MadeRun(root, "made")
    run.decide(facts())
    run.decide(Incumbent(config=BASELINE, hypothesis=None))
    change = ConfigChange(set_flags={"--max-running-requests": 512, "--stream-interval": 4})
    run.decide(hypothesis(1, change, BASELINE))
    config = BASELINE.apply(change)
    effective = {"--max-running-requests": 48, "--tp-size": 8, "--mem-fraction-static": 0.92}
    for number in (1, 2):
        run.decide(
            Launch(id=f"L{number}", hypothesis="H1", config=config, command="serve", effective=effective,
                   outcome=LaunchOutcome.COMPLETED)
        )  # fmt: skip
    return str(run.close().path)


def test_one_table_for_each_configuration(tmp_path):
    told = CliRunner().invoke(app, [made(tmp_path), "H1"]).output
    assert told.count("requested and in force") == 1
    rows = {
        line.split("│")[2].strip(): line for line in told.splitlines() if "--" in line and line.count("│") > 4
    }
    assert "512" in rows["--max-running-requests"]
    assert "48" in rows["--max-running-requests"]
    assert "not told" in rows["--stream-interval"]
    assert "as requested" in rows["--tp-size"]


def test_programs_get_what_is_not_as_requested(tmp_path):
    told = json.loads(CliRunner().invoke(app, [made(tmp_path), "--json"]).output)
    launches = told["hypotheses"][0]["launches"]
    assert [launch["not_as_requested"] for launch in launches] == [
        [{"flag": "--max-running-requests", "requested": 512, "effective": 48}]
    ] * 2
