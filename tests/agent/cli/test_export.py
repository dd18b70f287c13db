"""`moeagent export`: which launch it takes, what it says of it, and that it is what ran."""

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from parts.exported import read_compose, read_json, read_kubernetes, read_systemd
from parts.made_run import BASELINE, LADDER, MadeRun, facts, rung, write_run
from typer.testing import CliRunner

from moeagent.agent.cli.export import command
from moeagent.memory.errors import InputError
from moeagent.memory.ledger import Incumbent
from moeagent.memory.records import Launch, LaunchOutcome, VerdictKind
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.run_view import RunView
from moeagent.tools.hosts.command import Command, masked
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.processes import ProcessSpec, probe, start_detached

EXAMPLE = Path(__file__).parents[3] / "runs/example-sm120"
READERS = {"systemd": read_systemd, "compose": read_compose, "k8s": read_kubernetes, "json": read_json}

app = typer.Typer()
app.command()(command)


def export(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.parametrize("form", READERS)
def test_the_example_runs_champion_as_its_tape_has_it(form):
    view = RunView.read(RunFolder(EXAMPLE))
    whole = [x for x in view.ledger.launches_of(view.best) if x.outcome is LaunchOutcome.COMPLETED]
    words = shlex.split(whole[-1].command.replace("&&", "\n"), comments=False)
    start = words.index("python3")
    argv, env = READERS[form](export(EXAMPLE, "--format", form).stdout)
    assert argv == words[start:]
    assert [f"{name}={value}" for name, value in env.items()] == [w for w in words[:start] if w != "export"]
    assert env.items() >= view.best.env.items()


def test_a_run_without_a_proven_gain_gives_its_baseline(tmp_path):
    run = write_run(tmp_path, kinds=(VerdictKind.NEUTRAL, VerdictKind.REGRESSED))
    told = export(run.path)
    assert "this is the baseline" in told.stderr
    assert "# no change is proven better than the baseline" in told.stdout
    assert BASELINE.id in told.stdout.splitlines()[-1]


def test_what_was_built_on_without_proof_is_named(tmp_path):
    run = MadeRun(tmp_path, "open")
    run.decide(facts())
    run.decide(Incumbent(config=BASELINE, hypothesis=None))
    run.launch(BASELINE)
    other = BASELINE.model_copy(update={"env": {"A": "1"}})
    run.launch(other, "H1")
    run.decide(Incumbent(config=other, hypothesis="H1"))
    assert "--experiment H1" in export(run.close().path).stderr


def test_a_confirmed_champion_needs_no_note(tmp_path):
    run = write_run(tmp_path, kinds=(VerdictKind.IMPROVED,), hypotheses=1)
    told = export(run.path)
    assert told.stderr == ""
    assert "the best configuration, H1: +8.0%" in told.stdout
    assert BASELINE.id not in told.stdout.splitlines()[-1]


def test_any_experiment_can_be_named(tmp_path):
    run = write_run(tmp_path)
    assert "launch L1:" in export(run.path, "--experiment", "L1").stdout
    assert "launch L2: baseline" in export(run.path, "--experiment", "baseline").stdout
    blocked = export(run.path, "--experiment", "H3")
    assert "H3: blocked" in blocked.stdout
    assert "this launch ended as died-serving" in blocked.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--experiment", "H77"), "no experiment 'H77': it has baseline, H1, H2"),
        (("--format", "helm"), "choose one of sh, systemd, compose, k8s, json"),
    ],
)
def test_bad_input_is_one_clear_message(tmp_path, words, message):
    with pytest.raises(InputError, match=message):
        export(write_run(tmp_path).path, *words)


def test_a_run_that_launched_nothing_has_nothing_to_export(tmp_path):
    run = MadeRun(tmp_path, "early")
    run.decide(facts())
    with pytest.raises(InputError, match="launched nothing yet"):
        export(run.close().path)


def test_a_launch_that_was_refused_has_no_command(tmp_path):
    run = MadeRun(tmp_path, "refused")
    run.decide(facts())
    run.decide(Incumbent(config=BASELINE, hypothesis=None))
    run.decide(Launch(id="L1", hypothesis=None, config=BASELINE, command="", outcome=LaunchOutcome.REFUSED))
    with pytest.raises(InputError, match="L1 of run refused was never started"):
        export(run.close().path)


def test_a_file_is_written_and_a_script_can_be_run(tmp_path):
    run = write_run(tmp_path)
    script, unit = tmp_path / "start.sh", tmp_path / "llm.service"
    assert f"wrote {script}" in export(run.path, "-o", script).stdout
    assert script.stat().st_mode & 0o777 == 0o700
    export(run.path, "--format", "systemd", "-o", unit)
    assert unit.stat().st_mode & 0o777 == 0o600
    assert "ExecStart=" in unit.read_text()
    assert json.loads(export(run.path, "--json").stdout)["gpus"] == 0


def test_the_script_starts_what_was_measured_to_the_byte(tmp_path):
    """The same program, started once by moeagent on a host and once by the exported script."""
    program = tmp_path / "serve it's"
    program.write_text(
        f"#!{sys.executable} -I\nimport sys\n"
        "names = ('cmdline', 'environ')\n"
        "sys.stdout.buffer.write(b'\\n'.join(open(f'/proc/self/{n}', 'rb').read() for n in names))\n"
    )
    program.chmod(0o700)
    env = {"NCCL_ALGO": "a b\n$HOME 'q' \"é\"", "EMPTY": ""}
    measured = Command((str(program), "--x", "", "%h $(id) `id` \\ 'é' ***", "&&"), env)
    host = LocalHost("gpu1")
    process = start_detached(host, ProcessSpec(measured, str(tmp_path / "L1"), "made/L1"))
    while probe(host, process).alive:
        time.sleep(0.02)
    run = MadeRun(tmp_path, "made")
    run.decide(facts())
    run.decide(Incumbent(config=BASELINE, hypothesis=None))
    rungs = tuple(rung(c) for c in LADDER)
    outcome, text = LaunchOutcome.COMPLETED, masked(measured)
    run.decide(Launch(id="L1", hypothesis=None, config=BASELINE, command=text, outcome=outcome, rungs=rungs))
    script = tmp_path / "start.sh"
    export(run.close().path, "-o", script)
    by_script = subprocess.run([str(script)], capture_output=True, check=True, env={}).stdout
    assert cmdline(by_script) == cmdline(host.read(process.log))
    assert {k: environ(by_script)[k] for k in env} == {k: environ(host.read(process.log))[k] for k in env}
    assert environ(by_script)["NCCL_ALGO"] == env["NCCL_ALGO"]


def cmdline(told):
    return told[: told.index(b"\0\n")]


def environ(told):
    lines = told[told.index(b"\0\n") + 2 :].decode().split("\0")
    return dict(line.split("=", 1) for line in lines if line)
