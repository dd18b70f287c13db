"""The documentation says what the program does."""

from pathlib import Path

import pytest
from docs.generate import PAGES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", PAGES)
def test_generated_page_is_what_the_code_gives(name: str) -> None:
    assert (ROOT / name).read_text() == PAGES[name]()


def test_every_command_is_documented() -> None:
    from moeagent.agent.cli.app import COMMANDS

    text = (ROOT / "docs" / "commands.md").read_text()
    for command in COMMANDS:
        assert f"## moeagent {command}\n" in text
        assert "Example: " in text.split(f"## moeagent {command}\n")[1].split("\n## ")[0], command
