"""docs/safety.md names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_each_named_test_exists() -> None:
    named = NAMED.findall((ROOT / "docs" / "safety.md").read_text("utf-8"))
    assert len(named) > 30
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not (ROOT / file).is_file() or f"def {name}(" not in (ROOT / file).read_text("utf-8")
    ]
    assert missing == []


def test_each_case_names_a_test() -> None:
    rows = [
        line
        for line in (ROOT / "docs" / "safety.md").read_text("utf-8").splitlines()
        if line.startswith("| ") and not line.startswith("| case ")
    ]
    assert [row for row in rows if not NAMED.search(row)] == []
