"""From a source to a log: files, text and lines; UTF-16, gzip and binary noise; and what is no log at all."""

import codecs
import gzip
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from moeagent.memory.errors import InputError
from moeagent.tools.diagnosis.catalogue import Catalogue
from moeagent.tools.diagnosis.lines import parse_lines
from moeagent.tools.diagnosis.log import Log

BLOCK = 4 << 20
"""Bytes read at a time."""
_SAMPLE = 64 << 10
_BINARY_SHARE = 0.10
"""Share of control bytes in the sample above which the data is no text; logs with stray binary stay below 1 %."""
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\x0b\x0c\x1b\x08\x07")) + b"\x7f"


def read_log(source: str | Path | Iterable[str], catalogue: Catalogue) -> Log:
    """Read a log's text, file or lines. Raises InputError with one clear message when it cannot be one."""
    if isinstance(source, Path):
        name = str(source)
        with open_log(source) as stream:
            texts = list(_lines(_text_blocks(stream, name)))
    elif isinstance(source, str):
        name, texts = "the text", source.split("\n")
    else:
        name, texts = "the lines", [line.rstrip("\n") for line in source]
    if texts and not texts[-1]:
        texts.pop()
    if not any(text.strip() for text in texts):
        raise InputError(f"{name} is empty: nothing was logged; check that the server's output is redirected to it")
    return Log(list(parse_lines(enumerate(texts, 1))), len(texts))


def open_log(path: Path) -> IO[bytes]:
    """Open a log file, rotated and compressed ones included. Raises InputError."""
    try:
        if path.is_dir():
            raise InputError(f"{path} is a directory; give the log file inside it")
        stream = path.open("rb")
        magic = stream.read(2)
        stream.seek(0) if stream.seekable() else None
    except OSError as exc:
        raise InputError(f"cannot read {path}: {(exc.strerror or str(exc)).lower()}") from exc
    return io.BufferedReader(gzip.GzipFile(fileobj=stream)) if magic == b"\x1f\x8b" else stream


def _text_blocks(stream: IO[bytes], name: str) -> Iterator[str]:
    sample = stream.read(_SAMPLE)
    encoding = _encoding(sample)
    if encoding == "utf-8" and _looks_binary(sample):
        raise InputError(f"{name} is not a log: it holds binary data")
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    block = sample
    while block:
        yield decoder.decode(block)
        block = stream.read(BLOCK)
    yield decoder.decode(b"", final=True)


def _encoding(sample: bytes) -> str:
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if sample.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    half = max(1, len(sample) // 2)
    if sample[1::2].count(0) > 0.4 * half:
        return "utf-16-le"
    return "utf-16-be" if sample[::2].count(0) > 0.4 * half else "utf-8"


def _looks_binary(sample: bytes) -> bool:
    return len(sample) - len(sample.translate(None, _CONTROL)) > _BINARY_SHARE * max(1, len(sample))


def _lines(blocks: Iterable[str]) -> Iterator[str]:
    rest = ""
    for block in blocks:
        *whole, rest = (rest + block).split("\n")
        yield from whole
    yield rest
