"""Hostile values in flags and variables of launch commands: none changes what is run.

Each engine builds its command as for a launch, but what is launched prints the words and the variables that
it received.
"""

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from moeagent.memory.errors import InputError
from moeagent.memory.records import ServerConfig
from moeagent.tools.engines.catalogue import catalogue
from moeagent.tools.engines.protocol import Engine, EngineInstall
from moeagent.tools.engines.registry import ENGINES
from moeagent.tools.engines.render import render_flag
from moeagent.tools.hosts.command import Command, encode, plain, quote
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.ssh import SshHost

SEED = 20261129
VALUES = 100
"""In one command: half of them in flags, half in variables."""
END = "end-of-words"
PRINT = """printf '%s\\0' "$@"; printf '%s\\0' end-of-words; exec env -0"""
TRICKS = [
    "'", '"', "\\", "$(touch canary)", "`touch canary`", ";touch canary;", "&&", "||", "|", ">canary", "<",
    "*", "~", "!", "--", "-n", "--trust-remote-code", "\n", "\r\n", "\t", " ", "%s", "${IFS}", "$0", "#", "=",
    "\\n", "\x1b[31m", "é", "日本", "\udcff", "if", "{a,b}", "2>&1", "\x7f", ".", "/", "../",
]  # fmt: skip
LETTERS = [*TRICKS, *map(chr, range(1, 256)), *map(chr, range(0xDC80, 0xDD00))]


class Launch(NamedTuple):
    """A launch command, and what of it is hostile."""

    command: Command
    flags: dict[str, str]
    env: dict[str, str]

    def unchanged(self, printed: bytes) -> bool:
        """Whether the words and variables that arrived are these, one for one."""
        found = printed.split(b"\0")
        words = [encode(plain(part)) for part in self.command.argv[4:]]
        variables = {encode(f"{name}={value}") for name, value in self.env.items()}
        return (
            found[: len(words) + 1] == [*words, END.encode()]
            and variables <= set(found[len(words) + 1 :])
            # One word for each flag and value; a value with a dash is joined to its flag.
            and all(encode(f) in words or encode(f"{f}={v}") in words for f, v in self.flags.items())
            and all(encode(v) in words or v.startswith("-") for v in self.flags.values())
        )


def launch_of(engine: Engine, values: list[str]) -> Launch:
    """What the engine builds of a configuration with these values."""
    half = len(values) // 2
    flags = {f"--flag-{number}": value for number, value in enumerate(values[:half])}
    env = {f"V{number}": value for number, value in enumerate(values[half:])}
    config = ServerConfig(engine=engine.name, flags=flags, env=env)
    install = EngineInstall(command=("sh", "-c", PRINT, "sh"))
    return Launch(engine.command(config, model="/models/m", port=1, install=install), flags, env)


def hostile(count: int) -> Iterator[Launch]:
    """Launches with as many values in all; the same ones each time."""
    chance = random.Random(SEED)
    for number in range(count // VALUES):
        values = ["".join(chance.choices(LETTERS, k=chance.randrange(12))) for _ in range(VALUES)]
        yield launch_of(ENGINES[number % len(ENGINES)], values)


def locally(launch: Launch) -> bytes:
    """Through a shell of this machine, as the text that goes over SSH."""
    text = encode(quote(launch.command)).decode("utf-8", "surrogateescape")
    return LocalHost().run(Command(("sh", "-c", text)), timeout_s=60).stdout


@pytest.mark.parametrize(
    ("kind", "count", "sample"),
    [("local", 100_000, 5_000), pytest.param("ssh", 10_000, 1_000, marks=pytest.mark.part("sshd"))],
)
def test_no_value_changes_a_launch_command(
    full: bool, request: pytest.FixtureRequest, kind: str, count: int, sample: int
) -> None:
    run: Callable[[Launch], bytes] = locally
    if kind == "ssh":
        box: SshHost = request.getfixturevalue("ssh_host")
        run = lambda launch: box.run(launch.command, timeout_s=60).stdout  # noqa: E731
    tried = count if full else sample
    changed = [launch for launch in hostile(tried) if not launch.unchanged(run(launch))]
    print(f"\n{tried} hostile values through the command builder, {kind}: {len(changed)} commands changed")
    assert changed == []


@pytest.mark.parametrize("engine", [engine.name for engine in ENGINES])
def test_a_list_cannot_smuggle_in_a_flag(engine: str) -> None:
    """Flags that take several words have their value split: no word of it may be a flag."""
    names = [entry.name for entry in catalogue(engine).flags if entry.several]
    for name in names:
        assert render_flag(engine, name, "1 2 -3 a-b") == [name, "1", "2", "-3", "a-b"]
        for value in ("1 --trust-remote-code", "-x", "1\n--host 0.0.0.0", "1\t-m\tother"):
            with pytest.raises(InputError, match="begins with a dash"):
                render_flag(engine, name, value)
