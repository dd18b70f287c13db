"""What every record shares: strict pydantic models and canonical JSON."""

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """An immutable, validated record; unknown fields are errors."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        populate_by_name=True,
        ser_json_inf_nan="null",
    )


def canonical_json(value: Any) -> str:
    """One spelling for equal values: sorted keys, no spaces, no NaN. Raises ValueError on NaN or infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def fingerprint(value: Any, *, digits: int = 12) -> str:
    """The first hex digits of the SHA-256 of the value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:digits]
