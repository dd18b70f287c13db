"""Commands and options that the documentation names are there, also where a block cannot be run."""

import re
import shlex
from pathlib import Path

import pytest
from docs.blocks import ROOT, blocks_of, written_pages

from moeagent.agent.cli.app import COMMANDS, app

INLINE = re.compile(r"`(moeagent [^`\n]+)`")
BETWEEN_COMMANDS = re.compile(r"\s(?:\||&&|;|>|2>|&)\s?")
PLACEHOLDER = re.compile(r"[\[\]|<>]|\.\.\.")
PROSE = [*written_pages(), *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"))]


def command_named(name: str) -> object:
    import typer

    group = typer.main.get_command(app)
    return group.get_command(None, name)


def calls_in(text: str) -> list[list[str]]:
    """The arguments of every moeagent command in a shell line."""
    words = [shlex.split(part, comments=True) for part in BETWEEN_COMMANDS.split(text)]
    found = []
    for line in words:
        while line and re.fullmatch(r"[A-Z_]+=\S*", line[0]):
            line = line[1:]
        if line and Path(line[0]).name == "moeagent" and len(line) > 1:
            found.append(line[1:])
    return found


@pytest.mark.parametrize("page", written_pages(), ids=lambda path: path.name)
def test_commands_that_are_not_run_can_be_parsed(page: Path) -> None:
    for block in blocks_of(page):
        for said in block.said() if block.needs else ():
            for words in calls_in(said.command):
                assert_parses(words, f"{page.name}, line {block.line}: {said.command}")


def assert_parses(words: list[str], where: str) -> None:
    if words[0].startswith("--"):
        assert words[0] in ("--version", "--help"), where
        return
    assert words[0] in COMMANDS, where
    command_named(words[0]).make_context(words[0], list(words[1:]))


@pytest.mark.parametrize("page", PROSE, ids=lambda path: path.name)
def test_commands_in_the_text_exist_with_their_options(page: Path) -> None:
    for text in INLINE.findall(page.read_text("utf-8")):
        for words in calls_in(PLACEHOLDER.sub(" ", text)):
            assert_known(words, f"{page.name}: {text}")


def assert_known(words: list[str], where: str) -> None:
    name, *rest = words
    if name in ("--version", "--help"):
        return
    assert name in COMMANDS, where
    known = {option for param in command_named(name).params for option in param.opts} | {"--help"}
    named = {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
    assert named <= known, f"{where}: there is no {sorted(named - known)}"


def test_an_unknown_option_is_found() -> None:
    with pytest.raises(Exception, match=r"(?i)no such option"):
        assert_parses(["log", "last", "--no-such-option"], "made up")
    with pytest.raises(AssertionError, match="there is no"):
        assert_known(["log", "last", "--no-such-option"], "made up")
