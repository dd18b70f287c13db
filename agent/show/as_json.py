"""The second renderer: JSON on standard output, byte for byte the same for the same run."""

import json
import re
import sys
from typing import Any

UNUSUAL = re.compile(r"[^\x20-\x7e\n]")


def json_text(value: Any) -> str:
    """Indented, keys in the order of the record, never NaN; what a terminal would obey stands escaped."""
    return UNUSUAL.sub(_escaped, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def json_line(value: Any) -> str:
    """The same on one line."""
    return UNUSUAL.sub(_escaped, json.dumps(value, ensure_ascii=False, allow_nan=False))


def _escaped(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]


def print_json(value: Any) -> None:
    """One object on standard output."""
    sys.stdout.write(json_text(value) + "\n")
