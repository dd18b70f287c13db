"""Reads the metadata at the beginning of a GGUF file. Pure: from bytes, which may end anywhere.

Format: ggml-org/ggml docs/gguf.md (little endian): magic, version, tensor count, pair count, pairs.
"""

import struct
from typing import Any

MAGIC = b"GGUF"
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_LONGEST_KEPT_ARRAY = 64
"""Longer arrays (token lists) are read past, not kept."""


class NotGguf(ValueError):  # noqa: N818 - it says what the bytes are
    """The bytes do not begin like a GGUF file."""


def gguf_metadata(data: bytes) -> dict[str, Any]:
    """The key-value pairs as far as the bytes go; architecture keys stand before the long token lists.

    Raises NotGguf for anything else.
    """
    if data[:4] != MAGIC or len(data) < 24:
        raise NotGguf("it does not begin with GGUF")
    version, _, pairs = struct.unpack_from("<IQQ", data, 4)
    if version not in (2, 3):
        raise NotGguf(f"its GGUF version is {version}")
    reader = _Reader(data, 24)
    found: dict[str, Any] = {}
    try:
        for _ in range(pairs):
            key = reader.string()
            value = reader.value(reader.scalar("I"))
            if value is not None:
                found[key] = value
    except struct.error:
        return found
    return found


class _Reader:
    """A position in the bytes. Raises struct.error at their end."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def scalar(self, kind: str) -> Any:
        value = struct.unpack_from("<" + kind, self._data, self._position)[0]
        self._position += struct.calcsize("<" + kind)
        return value

    def string(self) -> str:
        length = self.scalar("Q")
        end = self._position + length
        if end > len(self._data):
            raise struct.error("cut short")
        text = self._data[self._position : end].decode(errors="replace")
        self._position = end
        return text

    def value(self, kind: int) -> Any:
        """One value; None for an array that is too long to keep."""
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self._array()
        if kind not in _SCALARS:
            raise NotGguf(f"it has a value of the unknown type {kind}")
        return self.scalar(_SCALARS[kind])

    def _array(self) -> list[Any] | None:
        kind, length = self.scalar("I"), self.scalar("Q")
        if length <= _LONGEST_KEPT_ARRAY:
            return [self.value(kind) for _ in range(length)]
        for _ in range(length):
            self.value(kind)
        return None
