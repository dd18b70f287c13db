"""What a reviewer wrote about a run: notes and judgements, appended to review.jsonl beside the tape.

The tape stays as it was recorded. The last judgement on an id counts; a rejected finding is not used by later
runs.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from moeagent.memory.errors import InputError, TapeError
from moeagent.memory.ledger import Ledger
from moeagent.memory.records import Record, canonical_json
from moeagent.memory.run_folder import RunFolder

FILE = "review.jsonl"
Judgement = Literal["confirmed", "rejected"]


class Review(Record):
    """One thing that the reviewer wrote."""

    at: str
    """ISO time with its offset."""
    about: str
    """A hypothesis (H3), a launch (L5), `baseline` or `run`."""
    judgement: Judgement | None = None
    """None for a note."""
    text: str = ""


def append_review(folder: RunFolder, review: Review) -> None:
    """Write one more line and sync it. Raises InputError when the folder cannot be written."""
    line = canonical_json(review.model_dump(mode="json")).encode() + b"\n"
    path = folder.path / FILE
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(fd, line)
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}. Make the folder writable first") from None


def read_reviews(folder: RunFolder) -> tuple[Review, ...]:
    """Everything that was written, oldest first. Raises TapeError naming a line that is not a review."""
    path = folder.path / FILE
    if not path.exists():
        return ()
    return tuple(_parse(path, number, line) for number, line in enumerate(_lines(path), start=1) if line)


def last_judgements(reviews: Iterable[Review]) -> dict[str, Review]:
    """The judgement that counts for each id that was judged."""
    return {review.about: review for review in reviews if review.judgement}


def check_id(run: str, ledger: Ledger, about: str) -> None:
    """Raises InputError, with the ids that there are, when the run has nothing of this name."""
    ids = [*(h.id for h in ledger.hypotheses), *(x.id for x in ledger.launches), "baseline", "run"]
    if about not in ids:
        raise InputError(f"run {run} has no {about!r}; it has {', '.join(ids)}")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise TapeError(f"cannot read {path}: {error}. Mend it or move it away; the tape is sound") from None


def _parse(path: Path, number: int, line: str) -> Review:
    try:
        return Review.model_validate_json(line)
    except ValidationError:
        raise TapeError(
            f"{path}, line {number} is not a review: mend the line or remove it; the tape is sound"
        ) from None
