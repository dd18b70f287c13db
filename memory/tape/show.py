"""The first difference of a replay, shown as a diff that a person can read."""

import difflib
import json
from typing import Any

from moeagent.memory.tape.lines import Entry, EntryType

MAX_LINES = 60


def difference(recorded: Entry, type_: EntryType, body: dict[str, Any]) -> str:
    """What the tape holds at this line against what the loop now asks or decides."""
    old = _pretty({"type": recorded.type, **recorded.body})
    new = _pretty({"type": type_, **body})
    lines = list(difflib.unified_diff(old, new, "recorded", "now", n=2, lineterm=""))
    cut = [f"... {len(lines) - MAX_LINES} more lines"] if len(lines) > MAX_LINES else []
    text = "\n".join([*lines[:MAX_LINES], *cut])
    return f"the replay differs from the tape at line {recorded.line_no}:\n{text}"


def _pretty(value: dict[str, Any]) -> list[str]:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).splitlines()
