"""docs/first-campaign.md, followed to the letter by a script in a fresh environment.

A new folder with nothing but the wheel, a new home, one shell that runs the page's commands in order: the
page itself makes the virtual environment, installs the wheel and does the rest.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docs.blocks import DOCS, ROOT, Block, blocks_of, missing_line

PAGE = DOCS / "first-campaign.md"
SOURCES = ("agent", "tools", "memory", "prompts", "pyproject.toml", "README.md", "LICENSE")
TIMEOUT_S = 1200
MARK = "=== moeagent docs "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder with the built wheel in dist/."""
    copy, fresh = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("fresh")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, copy / name)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", fresh / "dist", copy],
        check=True,
        timeout=TIMEOUT_S,
        stdin=subprocess.DEVNULL,
    )
    return fresh


def script(blocks: list[Block]) -> str:
    """One shell script of the page; each command's output stands between two marks."""
    lines = ["set -eu"]
    for block in blocks:
        if block.file:
            lines += [f"cat > {block.file} <<'END-OF-FILE'", block.body.rstrip("\n"), "END-OF-FILE"]
        elif block.language == "console" and not block.needs:
            for said in block.said():
                lines += [f"echo '{MARK}'", said.command]
    return "\n".join([*lines, f"echo '{MARK}'"])


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_S)
def test_the_first_campaign_followed_to_the_letter(folder: Path) -> None:
    blocks = blocks_of(PAGE)
    assert not any(block.needs or block.exit_code for block in blocks), "everything on this page is run"
    network = {k: v for k, v in os.environ.items() if k.startswith("PIP_") or k.upper().endswith("_PROXY")}
    (folder / "home").mkdir()
    done = subprocess.run(
        ["bash", "-c", script(blocks)],
        cwd=folder,
        env={
            **network,
            "PATH": os.pathsep.join([str(Path(sys.base_prefix) / "bin"), "/usr/bin", "/bin"]),
            "HOME": str(folder / "home"),
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "TERM": "dumb",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    outputs = done.stdout.split(f"{MARK}\n")[1:]
    said = [one for block in blocks if block.language == "console" for one in block.said()]
    assert len(outputs) == len(said) + 1
    for one, output in zip(said, outputs, strict=False):
        assert missing_line(one.shown, output) is None, f"{one.command}\n{output}"
