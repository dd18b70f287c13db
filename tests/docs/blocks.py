"""The fenced blocks of the documentation, and what a test may do with them.

A comment on the line before a fence says what the block is:

    <!-- needs gpu: eight GPUs and SGLang -->   a console block that is parsed, not run
    <!-- file moeagent.toml -->                 the reader writes this file
    <!-- exit 6 -->                             the last command of the block ends with this code

A console block without `needs` is run. Lines after a command are lines of its output, in their order; `...`
stands for anything: alone for lines, inside a line for text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = ("commands.md", "settings.md", "errors.md", "graph.md", "schema.md")
ENVIRONMENTS = {
    "gpu": "a host with GPUs and an engine installed",
    "ssh": "a host that is reached over SSH",
    "container": "a container engine with an engine's image",
    "model": "an endpoint of a language model",
    "clone": "a clone of the repository with its virtual environment",
    "browser": "somebody who looks at a page, or at a terminal, and ends the command",
    "hours": "more time than a test has",
}
"""Why a block may not be run by the tests. It is parsed against the command line all the same."""
FENCE = re.compile(
    r"(?:^<!-- (?P<mark>.+?) -->\n)?^```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Said:
    """One command and the lines that the page shows of its output."""

    command: str
    shown: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """One fenced block. `mark` is the comment before it."""

    page: str
    line: int
    language: str
    mark: str
    body: str

    @property
    def needs(self) -> str:
        """The environment that it needs; empty for one that is run."""
        return self.mark.removeprefix("needs ").partition(":")[0] if self.mark.startswith("needs ") else ""

    @property
    def why(self) -> str:
        """What exactly is missing here."""
        return self.mark.partition(":")[2].strip()

    @property
    def file(self) -> str:
        """The file that the reader writes; empty for other blocks."""
        return self.mark.removeprefix("file ") if self.mark.startswith("file ") else ""

    @property
    def exit_code(self) -> int:
        """Of the block's last command."""
        return int(self.mark.removeprefix("exit ")) if self.mark.startswith("exit ") else 0

    def said(self) -> Iterator[Said]:
        """Commands with their output; a command goes on after a backslash at the end of its line."""
        joined = self.body.replace("\\\n", "")
        for piece in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
            command, _, shown = piece.partition("\n")
            yield Said(command, tuple(shown.rstrip("\n").splitlines()))


def blocks_of(path: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    text = path.read_text("utf-8")
    return [
        Block(
            page=path.name,
            line=text.count("\n", 0, found.start()) + 1,
            language=found["language"],
            mark=found["mark"] or "",
            body=found["body"],
        )
        for found in FENCE.finditer(text)
    ]


def written_pages() -> list[Path]:
    """Pages that people wrote."""
    return [path for path in sorted(DOCS.glob("*.md")) if path.name not in GENERATED]


def missing_line(shown: tuple[str, ...], output: str) -> str | None:
    """The first shown line that the output does not have after the ones before it; None when it has all."""
    lines = iter([line.rstrip() for line in output.splitlines()])
    for line in shown:
        if line.strip() in ("", "..."):
            continue
        wanted = re.compile(".*".join(re.escape(part) for part in line.rstrip().split("...")))
        if not any(wanted.fullmatch(found) for found in lines):
            return line
    return None
