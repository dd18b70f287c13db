"""What one run keeps on disk: the tape, and long texts stored once under their hash.

runs/<id>/
├── campaign.toml   the settings as resolved
├── tape.jsonl      the journal
├── lock            who works on the run now
├── live.json       what moves in the step under way; no part of the record
├── logs/           server logs and other long texts, gzip, named by the hash of their content
├── load/           per-request results of each rung, as the load generator packed them
├── report.md       findings report
└── report.html
"""

import gzip
import hashlib
import json
import os
import re
import secrets
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from moeagent.memory.errors import InputError, TapeError
from moeagent.memory.tape.lines import TapeFile, read_tape

DIGEST_DIGITS = 20
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class RunFolder:
    """Paths and blobs of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.id = path.name

    @classmethod
    def create(cls, root: Path, run_id: str) -> "RunFolder":
        """A new, private folder. Raises InputError for a bad name, and when it exists or cannot be made."""
        if not RUN_ID.fullmatch(run_id):
            raise InputError(
                f"run id {run_id!r}: use letters, digits and . _ -, beginning with one of the first"
            )
        folder = cls(root / run_id)
        try:
            root.mkdir(parents=True, exist_ok=True)
            for sub in ("", "logs", "load"):
                (folder.path / sub).mkdir(mode=0o700)
        except FileExistsError:
            raise InputError(f"{folder.path} exists already: choose another --run-id") from None
        except OSError as error:
            raise InputError(
                f"cannot create {folder.path}: {error.strerror}. Choose another place with --runs"
            ) from None
        return folder

    @property
    def tape(self) -> Path:
        """The journal."""
        return self.path / "tape.jsonl"

    def read_tape(self) -> TapeFile:
        """The whole tape, checked."""
        return read_tape(self.tape)

    def put_text(self, text: str) -> str:
        """Keep a long text; returns its name for `text`."""
        data = text.encode("utf-8", "surrogateescape")
        return self._put("logs", data, gzip.compress(data, compresslevel=6, mtime=0), ".gz")

    def text(self, name: str) -> str:
        """A text that `put_text` kept. Raises TapeError when it is missing or was changed."""
        try:
            data = gzip.decompress(self._get("logs", name, ".gz"))
        except (OSError, EOFError, zlib.error) as error:
            raise TapeError(f"{self.path / 'logs' / name}.gz is damaged: {error}") from None
        self._check("logs", name, ".gz", data)
        return data.decode("utf-8", "surrogateescape")

    def put_raw(self, data: bytes) -> str:
        """Keep a rung's packed per-request results; returns the name for `raw`."""
        return self._put("load", data, data, ".bin")

    def raw(self, name: str) -> bytes:
        """Results that `put_raw` kept. Raises TapeError when they are missing or were changed."""
        data = self._get("load", name, ".bin")
        self._check("load", name, ".bin", data)
        return data

    def _put(self, kind: str, content: bytes, stored: bytes, suffix: str) -> str:
        name = _digest(content)
        target = self.path / kind / f"{name}{suffix}"
        if not target.exists():
            try:
                write_private(target, stored)
            except OSError as error:
                raise TapeError(
                    f"cannot write {target}: {error.strerror}. The tape is sound: make room, then "
                    f"`moeagent resume {self.id}`"
                ) from error
        return name

    def _get(self, kind: str, name: str, suffix: str) -> bytes:
        path = self.path / kind / f"{name}{suffix}"
        try:
            return path.read_bytes()
        except OSError as error:
            raise TapeError(f"cannot read {path}, which the tape names: {error.strerror}") from None

    def _check(self, kind: str, name: str, suffix: str, content: bytes) -> None:
        if _digest(content) != name:
            path = self.path / kind / f"{name}{suffix}"
            raise TapeError(f"{path} was changed: its content does not match its name")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGEST_DIGITS]


def write_private(path: Path, content: bytes) -> None:
    """Write to a temporary name, sync and rename: readers see the old file or the new one, never a part."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def new_run_id(now: datetime, nonce: str) -> str:
    """Sorts by time; the nonce keeps two runs of one second apart."""
    return f"{now:%Y%m%d-%H%M%S}-{nonce}"


def list_runs(root: Path) -> Iterator[RunFolder]:
    """Every run below the root, newest first."""
    if not root.is_dir():
        return
    runs = [RunFolder(path) for path in root.iterdir() if (path / "tape.jsonl").is_file()]
    yield from sorted(runs, key=lambda run: (_created_at(run), run.id), reverse=True)


def _created_at(run: RunFolder) -> str:
    """When the run was begun, by its tape's first line; empty where that cannot be read."""
    try:
        with run.tape.open("rb") as tape:
            return str(json.loads(tape.readline().partition(b" ")[2])["created_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def find_run(root: Path, name: str) -> RunFolder:
    """A run by path, id, unique beginning of its id, or `last`. Raises InputError with the nearest names."""
    path = Path(name)
    if (path / "tape.jsonl").is_file():
        return RunFolder(path.resolve())
    runs = list(list_runs(root))
    if name == "last" and runs:
        return runs[0]
    matches = [run for run in runs if run.id == name] or [run for run in runs if run.id.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    raise InputError(_not_found(root, name, [run.id for run in (matches or runs)]))


def _not_found(root: Path, name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=3, cutoff=0.4) or known[:3]
    hint = f"; did you mean {', '.join(near)}?" if near else f"; there are no runs in {root}"
    return f"there is no run {name!r} in {root}{hint} `moeagent runs` lists them, --runs names another folder"
