"""From a source to a log: files, streams, text, lines; UTF-16, gzip, stray binary; and what is no log."""

import codecs
import gzip
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from moeagent.memory.errors import InputError
from moeagent.tools.diagnosis.catalogue import Catalogue
from moeagent.tools.diagnosis.log import Log
from moeagent.tools.diagnosis.scanner import Scanner, feed_all

BLOCK = 4 << 20
"""Bytes read at a time."""
_SAMPLE = 64 << 10
_BINARY_SHARE = 0.05
"""Share of control bytes above which a sample is no text; logs with stray binary stay below 1 %."""
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\x0b\x0c\x1b\x08\x07")) + b"\x7f"


def read_log(source: str | Path | Iterable[str], catalogue: Catalogue) -> Log:
    """Read a log's text, file or lines. Raises InputError with one clear message when it cannot be one."""
    if isinstance(source, Path):
        with open_log(source) as stream:
            return read_stream(stream, str(source), catalogue)
    if isinstance(source, str):
        return read_stream(io.BytesIO(source.encode("utf-8", "replace")), "the text", catalogue)
    blocks = (line.rstrip("\n").encode("utf-8", "replace") + b"\n" for line in source)
    return _not_empty(feed_all(Scanner(catalogue), blocks), "the lines")


def read_stream(stream: IO[bytes], name: str, catalogue: Catalogue) -> Log:
    """Read an open binary stream to its end; `name` is for the messages. Raises InputError."""
    try:
        log = feed_all(Scanner(catalogue), _utf8_blocks(stream, name))
    except (OSError, EOFError, gzip.BadGzipFile) as exc:
        raise InputError(f"cannot read {name}: {exc}; is the file complete?") from exc
    return _not_empty(log, name)


def open_log(path: Path) -> IO[bytes]:
    """Open a log file, rotated and compressed ones included. Raises InputError."""
    if path.is_dir():
        raise InputError(f"{path} is a directory; give the log file inside it")
    try:
        with path.open("rb") as probe:
            compressed = probe.seekable() and probe.read(2) == b"\x1f\x8b"
        return io.BufferedReader(gzip.open(path)) if compressed else path.open("rb")
    except OSError as exc:
        raise InputError(f"cannot read {path}: {(exc.strerror or str(exc)).lower()}") from exc


def _not_empty(log: Log, name: str) -> Log:
    if not any(line.text.strip() for line in log.lines):
        raise InputError(
            f"{name} is empty: nothing was logged; check that the server's output is redirected to it"
        )
    return log


def _utf8_blocks(stream: IO[bytes], name: str) -> Iterator[bytes]:
    block = stream.read(_SAMPLE)
    while block.startswith(b"\0\0\0\0"):
        block = block.lstrip(b"\0") or stream.read(BLOCK)  # a log cut by copytruncate begins with a hole
    encoding = sniff_encoding(block)
    if encoding == "utf-8":
        if _looks_binary(block):
            raise InputError(f"{name} is not a log: it holds binary data")
        while block:
            yield block
            block = stream.read(BLOCK)
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    while block:
        yield decoder.decode(block).encode("utf-8", "replace")
        block = stream.read(BLOCK)
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def sniff_encoding(sample: bytes) -> str:
    """The encoding of a log by its first bytes: UTF-16 by its mark or its zeros, otherwise UTF-8."""
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if sample.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    half = max(1, len(sample) // 2)
    even, odd = sample[::2].count(0) / half, sample[1::2].count(0) / half
    if max(even, odd) > 0.4 and min(even, odd) < 0.1:
        return "utf-16-le" if odd > even else "utf-16-be"
    return "utf-8"


def _looks_binary(sample: bytes) -> bool:
    return len(sample) - len(sample.translate(None, _CONTROL)) > _BINARY_SHARE * max(1, len(sample))
