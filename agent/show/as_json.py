"""The second renderer: JSON on standard output, byte for byte the same for the same run."""

import json
import sys
from typing import Any


def json_text(value: Any) -> str:
    """Indented, keys in the order of the record, never NaN."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def print_json(value: Any) -> None:
    """One object on standard output."""
    sys.stdout.write(json_text(value) + "\n")
