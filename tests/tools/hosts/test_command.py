"""Whatever a value holds, it arrives as it is and changes nothing around it."""

import subprocess
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from moeagent.memory.errors import InputError
from moeagent.tools.hosts.command import Command, Secret, encode, mask, masked, quote, without_secrets
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.protocol import Host

SSHD = pytest.mark.part("sshd")

TRICKS = [
    "",
    " ",
    "'",
    '"',
    "\\",
    "$(touch /tmp/x)",
    "`id`",
    "; rm -rf /",
    "&& id",
    "|",
    ">",
    "*",
    "~",
    "!",
    "-n",
]
TRICKS += [
    "--",
    "\n",
    "\r\n",
    "\t",
    "%s",
    "{}",
    "$IFS",
    "a=b",
    "#",
    "if",
    "\\n",
    "\x1b[31m",
    "\udcff",
    "é",
    "日本",
]

values = st.lists(
    st.one_of(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
        st.lists(st.sampled_from(TRICKS), max_size=6).map("".join),
    ),
    max_size=20,
)


def echo(host: Host, parts: list[str], **more: object) -> list[bytes]:
    """What a program on the host received as its arguments."""
    result = host.run(Command(("/usr/bin/printf", "%s\\0", *parts), **more), timeout_s=30)  # type: ignore[arg-type]
    assert result.ok
    return result.stdout.split(b"\0")[:-1] if parts else []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values)
@example(TRICKS)
def test_values_arrive_unchanged(host: Host, parts: list[str]) -> None:
    assert echo(host, parts) == [encode(part) for part in parts]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values)
@example(TRICKS)
def test_environment_arrives_unchanged(host: Host, parts: list[str]) -> None:
    env = {f"V{n}": part for n, part in enumerate(parts)}
    found = host.run(Command(("env", "-0"), env=env), timeout_s=30).stdout.split(b"\0")
    for name, value in env.items():
        assert encode(f"{name}={value}") in found


@pytest.mark.parametrize(("kind", "batches"), [("local", 100), pytest.param("ssh", 10, marks=SSHD)])
def test_a_thousand_hostile_values_a_batch(request, kind: str, batches: int) -> None:
    """Through the quoting on both hosts: 100,000 values for a shell of this machine, 10,000 over SSH."""
    random = Random(20261129)
    alphabet = [*TRICKS, *map(chr, range(1, 256)), *map(chr, range(0xDC80, 0xDD00))]
    for _ in range(batches):
        parts = ["".join(random.choices(alphabet, k=random.randrange(12))) for _ in range(1000)]
        command = Command(("/usr/bin/printf", "%s\\0", *parts))
        if kind == "local":
            command = Command(("sh", "-c", encode(quote(command)).decode("utf-8", "surrogateescape")))
        host = LocalHost() if kind == "local" else request.getfixturevalue("ssh_host")
        received = host.run(command, timeout_s=60).stdout.split(b"\0")[:-1]
        assert received == [encode(part) for part in parts]


@settings(max_examples=100, deadline=None)
@given(values)
@example(TRICKS)
def test_quoted_command_has_the_same_parts_for_a_shell(parts: list[str]) -> None:
    text = encode(quote(Command(("/usr/bin/printf", "%s\\0", *parts))))
    printed = subprocess.run(["sh", "-c", text], capture_output=True, check=True).stdout
    assert printed.split(b"\0")[:-1] == [encode(part) for part in parts] or not parts


@pytest.mark.parametrize("word", ["if", "eval", "exit", "a=b", "$(id)", "no such program"])
def test_a_program_named_like_shell_syntax_is_only_a_program(host: Host, word: str) -> None:
    result = host.run(Command((word, "echo bad")), timeout_s=30)
    assert (result.exit_code, result.stdout) == (127, b"")


def test_working_folder_may_have_any_name(host: Host, tmp_path) -> None:
    folder = tmp_path / "a '$(id)' \n-b"
    folder.mkdir()
    assert host.run(Command(("pwd",), cwd=str(folder)), timeout_s=30).text == f"{folder}\n"


@pytest.mark.parametrize(
    ("argv", "env"),
    [((), {}), (("",), {}), (("-x",), {}), (("a\0b",), {}), (("a", "\ud800"), {}), (("a",), {"B-C": "1"}),
     (("a",), {"B": "\0"}), (("a",), {"": "x"}), (("a",), {"A=B": "x"})],
)  # fmt: skip
def test_what_no_process_can_receive_is_refused(argv, env) -> None:
    with pytest.raises(InputError):
        Command(argv, env=env)


def test_secrets_reach_the_process_and_nobody_else(host: Host) -> None:
    secret = Secret("hunter2")
    command = Command(("sh", "-c", 'echo "$HF_TOKEN" "$0"', secret), env={"HF_TOKEN": secret})
    assert host.run(command, timeout_s=30).text == "hunter2 hunter2\n"
    for shown in (masked(command), str(command), repr(command), repr(secret), str(secret), f"{secret}"):
        assert "hunter2" not in shown
    with pytest.raises(InputError) as refused:
        Command(("a", Secret("hunter2\0")))
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (Command(("a", "--api-key", "k1", "b")), "a --api-key *** b"),
        (Command(("a", "--api-key=k1")), "a --api-key=***"),
        (Command(("a",), env={"HF_TOKEN": "k1", "B": "c d"}), "export HF_TOKEN=*** && export B='c d' && a"),
        (Command(("a", "https://me:k1@host/x")), "a https://me:***@host/x"),
        (
            Command(("a", "--max-total-tokens", "5", "--tokenizer", "t")),
            "a --max-total-tokens 5 --tokenizer t",
        ),
        (Command(("a", "b c"), cwd="/d e"), "cd '/d e' && a 'b c'"),
    ],
)
def test_masked(command: Command, shown: str) -> None:
    assert masked(command) == shown


def test_mask_replaces_longer_secrets_first() -> None:
    assert (
        mask("abcd abc http://u:p@h", [Secret("abc"), Secret("abcd"), Secret("")]) == "*** *** http://u:***@h"
    )


def test_the_words_of_a_running_process_show_no_secret() -> None:
    words = ["serve", "--api-key", "s1", "--hf-token=s2", "--x", "http://me:s3@h", "--tp-size", "8"]
    shown = ["serve", "--api-key", "***", "--hf-token=***", "--x", "http://me:***@h", "--tp-size", "8"]
    assert without_secrets(words) == shown
    assert without_secrets([]) == []
