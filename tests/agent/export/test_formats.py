"""Every format gives back, word for word, what was measured; hostile values included."""

import json
import shlex
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from parts.exported import read_compose, read_json, read_kubernetes, read_systemd

from moeagent.agent.export.formats import FORMATS
from moeagent.agent.export.recorded import recorded_start
from moeagent.agent.export.records import Export
from moeagent.agent.export.words import Slot
from moeagent.memory.errors import InputError, TapeError
from moeagent.tools.hosts.command import Command, Secret, has_password, masked

READERS = {"systemd": read_systemd, "compose": read_compose, "k8s": read_kubernetes, "json": read_json}
FRAGMENTS = (
    "%h", "%%", "$HOME", "${X}", "$$", "$(NAME)", "$", "'", '"', "\\", "\\n", "\n", "\t", "***", "&&", "; rm",
    "`id`", "#", "yes", "0o17", "1e3", "~", "- a", ": b", "a b", " ", "", "=", "{}", "[]", "!x", "*", "?",
    "|", "\u2028", "\ufeff", "\x85", "\xa0", "é", "😀", "http://u:p", "@h", "export", "cd",
)  # fmt: skip
PRINTABLE = st.characters(exclude_categories=["Cs", "Cc"])
HOSTILE = st.lists(st.sampled_from(FRAGMENTS) | st.text(PRINTABLE, max_size=3), max_size=5).map("".join)
NAMES = st.sampled_from(["NCCL_ALGO", "A", "_x9", "SGLANG_ENABLE_SPEC_V2", "PYTHONPATH"])
COMMANDS = st.builds(
    lambda argv, env: Command(("python3", *argv), env),
    st.lists(HOSTILE, max_size=6),
    st.dictionaries(NAMES, HOSTILE, max_size=3),
).filter(lambda c: not has_password(" ".join((*c.argv, *c.env.values()))))


def exported(command, form, **more):
    about = ("a run: \\", "of\ntwo lines $(x) %h")
    return FORMATS[form](Export("name", recorded_start(masked(command)), "/m", 8, about, **more))


def words_of(start):
    return ["".join(word) for word in start.argv], {name: "".join(word) for name, word in start.env.items()}


@given(COMMANDS)
@example(Command(("export", "A=1"), {"B": "&& cd"}))
def test_a_recorded_command_gives_back_its_words(command):
    start = recorded_start(masked(command))
    assert words_of(start) == (list(command.argv), dict(command.env))
    assert start.secrets == ()


@pytest.mark.parametrize("form", READERS)
@settings(max_examples=60, deadline=None)
@given(command=COMMANDS)
def test_a_format_gives_back_the_words(form, command):
    argv, env = READERS[form](exported(command, form))
    assert argv == list(command.argv)
    assert env == dict(command.env)


@pytest.fixture(scope="module")
def printer(tmp_path_factory):
    """A program that prints its arguments and the environment that it was started with."""
    path = tmp_path_factory.mktemp("a b $(id)") / "it's %h"
    path.write_text(
        f"#!{sys.executable} -I\nimport json, sys\n"
        "env = open('/proc/self/environ', 'rb').read().decode().split('\\0')\n"
        "print(json.dumps([sys.argv, dict(line.split('=', 1) for line in env if line)]))\n"
    )
    path.chmod(0o700)
    return str(path)


def run_script(script, **env):
    done = subprocess.run(["sh", "-c", script, "sh"], env=env, capture_output=True, text=True, check=False)
    return done, (json.loads(done.stdout) if done.returncode == 0 else None)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(command=COMMANDS)
def test_a_shell_starts_exactly_the_measured_program(printer, command):
    """A real sh, a real exec; what the shell adds to the environment by itself is left aside."""
    command = Command((printer, *command.argv[1:]), command.env)
    done, told = run_script(exported(command, "sh"))
    assert told is not None, done.stderr
    assert told[0] == list(command.argv)
    assert {k: v for k, v in told[1].items() if k not in ("PWD", "OLDPWD", "SHLVL", "_")} == dict(command.env)


@pytest.mark.parametrize("form", FORMATS)
def test_control_characters_arrive_or_are_refused(form, printer):
    command = Command((printer, "a\x01\x7f\r\x1b[31m"), {"X": "\x02"})
    if form == "systemd":
        command = Command(("serve", *command.argv[1:]), command.env)
        with pytest.raises(InputError, match="control characters"):
            exported(command, form)
    elif form == "sh":
        assert run_script(exported(command, form))[1][0] == list(command.argv)
    else:
        assert READERS[form](exported(command, form)) == (list(command.argv), dict(command.env))


SECRETS = {
    "HF_TOKEN": "hf_Planted'1 $x",
    "API_KEY": "planted-2",
    "DB_PASSWORD": "planted3",
    "SECRET_PASSWORD": "planted4",
}
WITH_SECRETS = Command(
    (
        "serve", "--api-key", SECRETS["API_KEY"], "http://me:planted4@store/x y", "--other-token", "plain",
    ),
    {"HF_TOKEN": SECRETS["HF_TOKEN"], "DB": "http://me:planted3@db", "OPEN": "yes"},
)  # fmt: skip
FULL = (list(WITH_SECRETS.argv), dict(WITH_SECRETS.env))


def test_secrets_become_variables_that_have_to_be_set():
    start = recorded_start(masked(WITH_SECRETS))
    assert start.secrets == ("HF_TOKEN", "DB_PASSWORD", "API_KEY", "SECRET_PASSWORD")
    assert start.argv[2] == (Slot("API_KEY"),)
    assert start.argv[3] == ("http://me:", Slot("SECRET_PASSWORD"), "@store/x y")


@pytest.mark.parametrize("form", FORMATS)
def test_no_format_holds_a_secret(form):
    text = exported(WITH_SECRETS, form)
    assert "lanted" not in text
    assert "***" not in text


@pytest.mark.parametrize("form", ["compose", "k8s", "json"])
def test_with_the_variables_set_the_words_are_the_measured_ones(form):
    argv, env = READERS[form](exported(WITH_SECRETS, form), SECRETS)
    assert argv == FULL[0]
    assert {name: env[name] for name in FULL[1] if name in env} | {"HF_TOKEN": SECRETS["HF_TOKEN"]} == FULL[1]


def test_a_unit_names_what_its_file_of_secrets_needs():
    text = exported(WITH_SECRETS, "systemd")
    argv, env = read_systemd(text, SECRETS)
    assert argv == FULL[0]
    assert env == {"OPEN": "yes"}
    needed = [line.rpartition(": ")[2] for line in text.splitlines() if " holds: " in line]
    assert needed == ["HF_TOKEN=...", "DB=...", "API_KEY=...", "SECRET_PASSWORD=..."]
    assert "EnvironmentFile=/etc/moeagent/name.secrets" in text


def test_a_script_fills_in_its_secrets_and_stops_without_them(printer):
    command = Command((printer, *WITH_SECRETS.argv[1:]), WITH_SECRETS.env)
    script = exported(command, "sh")
    done, told = run_script(script, **SECRETS)
    assert told is not None, done.stderr
    assert told[0] == list(command.argv)
    assert FULL[1].items() <= told[1].items()
    done, told = run_script(script)
    assert told is None
    assert "set HF_TOKEN" in done.stderr


def test_a_secret_part_without_a_name_gets_one():
    command = Command(("serve", Secret("s3"), Secret("s4"), "--password=s5"), {"X": Secret("s6")})
    assert recorded_start(masked(command)).secrets == ("X", "SECRET", "SECRET_2", "PASSWORD")


@pytest.mark.parametrize("text", ["", "'open", "set -x && python3", "cd a b && python3", "a\tb"])
def test_text_that_was_not_recorded_is_refused(text):
    with pytest.raises(TapeError, match="recorded command"):
        recorded_start(text)


@pytest.mark.parametrize("program", ["@x", "+x", "a$b"])
def test_a_program_name_that_systemd_would_misread_is_refused(program):
    with pytest.raises(InputError, match="export it as sh"):
        exported(Command((program,)), "systemd")


@pytest.mark.parametrize("form", ["compose", "k8s"])
def test_a_command_that_starts_a_container_is_not_put_into_one(form):
    with pytest.raises(InputError, match="starts a container itself"):
        exported(Command(("docker", "run", "image", "serve")), form)
    assert "docker run image serve" in exported(Command(("docker", "run", "image", "serve")), "sh")


def test_a_folder_is_kept():
    command = Command(("serve",), cwd="/a b")
    assert "cd '/a b'" in exported(command, "sh")
    assert "WorkingDirectory=/a b\n" in exported(command, "systemd")
    assert 'working_dir: "/a b"' in exported(command, "compose")
    assert 'workingDir: "/a b"' in exported(command, "k8s")
    with pytest.raises(InputError, match="absolute"):
        exported(Command(("serve",), cwd="a"), "systemd")


def test_an_image_is_named_or_asked_for():
    command = Command(("serve",))
    assert "${MOEAGENT_IMAGE:?" in exported(command, "compose")
    assert 'image: "lmsysorg/sglang:v0.5.9"' in exported(command, "k8s", image="lmsysorg/sglang:v0.5.9")
    assert "SET-THE-IMAGE" in exported(command, "k8s")


HARD = (
    "python3",
    "%h 100%%",
    "$HOME ${A} $$",
    ";",
    "a\nb",
    'it\'s "x"',
    "back\\slash\\n",
    "",
    "é😀",
    "&&",
    "--x=*",
)


@pytest.mark.part("systemd")
def test_systemd_itself_reads_the_words(tmp_path):
    """Its debug output quotes the words for a shell, before it puts a dollar sign for $$."""
    unit = tmp_path / "llm.service"
    env = {"A": '%h $HOME ${A} "q" it\'s \\n', "B": "x y"}
    command = Command((sys.executable, *HARD[1:]), env)
    unit.write_text(exported(command, "systemd"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        env={"SYSTEMD_LOG_LEVEL": "debug", "SYSTEMD_LOG_TARGET": "console", "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = [line.strip() for line in (done.stdout + done.stderr).split("\n")]
    [line] = [line.removeprefix("Command Line: ") for line in told if line.startswith("Command Line: ")]
    words = [word.replace(r"\$", "$").replace("$$", "$") for word in shlex.split(line)]
    # systemd shows a line break as \n; it is told from those two characters by the rules tested above.
    assert words == [word.replace("\n", r"\n") for word in command.argv]
    seen = [line.removeprefix("Environment: ") for line in told if line.startswith("Environment: ")]
    assert dict(line.split("=", 1) for line in seen) == env


@pytest.mark.part("kubectl")
def test_the_yaml_reader_of_kubernetes_takes_every_value_for_text(tmp_path):
    command = Command((*HARD, "0o17", "yes", "1e3", "~", "0x1F", "2026-01-01", "null"), {"N": "08"})
    deployment = exported(command, "k8s")
    (tmp_path / "d.yaml").write_text(deployment)
    (tmp_path / "kustomization.yaml").write_text("resources: [d.yaml]\n")
    done = subprocess.run(["kubectl", "kustomize", str(tmp_path)], capture_output=True, text=True, check=True)
    assert read_kubernetes(done.stdout) == (list(command.argv), dict(command.env))
