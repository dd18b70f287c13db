"""Every console block of the documentation does what the page says."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docs.blocks import ENVIRONMENTS, ROOT, Block, blocks_of, missing_line, written_pages

FRESH = ("first-campaign.md",)
"""Followed in an environment of its own by test_first_campaign.py."""
PAGES = [path for path in written_pages() if path.name not in FRESH]
TIMEOUT_S = 240


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What the commands of a page find: the examples and the committed runs."""
    folder = tmp_path / "moeagent"
    for name in ("examples", "runs/example-sm120", "runs/example-h200-vllm", "runs/example-h200-fp8"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


def environment(folder: Path) -> dict[str, str]:
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
        "HOME": str(home),
        "TMPDIR": str(folder.parent),
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "TERM": "dumb",
    }


def follow(block: Block, folder: Path) -> None:
    """Write the block's file, or run its commands and compare what they print."""
    if block.file:
        (folder / block.file).write_text(block.body)
        return
    said = list(block.said())
    for place, one in enumerate(said):
        done = subprocess.run(
            ["bash", "-euc", one.command],
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
        )
        where = f"{block.page}, block at line {block.line}: {one.command}\n{done.stdout[-4000:]}"
        assert done.returncode == (block.exit_code if place == len(said) - 1 else 0), where
        assert missing_line(one.shown, done.stdout) is None, where


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_the_commands_of_a_page_do_what_it_says(page: Path, clone: Path) -> None:
    for block in blocks_of(page):
        if block.file or (block.language == "console" and not block.needs):
            follow(block, clone)


@pytest.mark.parametrize("page", written_pages(), ids=lambda path: path.name)
def test_a_block_that_is_not_run_says_what_it_needs(page: Path) -> None:
    for block in blocks_of(page):
        if block.needs:
            assert block.needs in ENVIRONMENTS, f"{page.name}, line {block.line}"
            assert block.why, f"{page.name}, line {block.line}: say why"
        if block.language == "console":
            assert list(block.said()), f"{page.name}, line {block.line}: no command"
        else:
            commands = [line for line in block.body.splitlines() if line.startswith(("moeagent ", "$ "))]
            assert commands == [], f"{page.name}, line {block.line}: commands belong into a console block"
