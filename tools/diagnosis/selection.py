"""For a language model: the few lines worth its attention, and the check of what it answers."""

import re
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from moeagent.memory.records.diagnosis import Diagnosis, Remedy
from moeagent.tools.diagnosis.candidates import find_candidates
from moeagent.tools.diagnosis.catalogue import Catalogue, load_catalogue
from moeagent.tools.diagnosis.evidence import Evidence
from moeagent.tools.diagnosis.log import Log
from moeagent.tools.diagnosis.reading import read_log

MOST = 60
LONGEST = 400
"""Characters of a line that a model is shown."""
MOST_CONFIDENT = 0.6
"""A model's answer rests on reading, not on a known message."""
_SPACES = re.compile(r"\s+")


class ModelAnswer(BaseModel):
    """What a model may answer: a class, a line that exists, and a change."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    failure_class: str = Field(alias="class")
    line_no: int
    root_line: str
    explanation: str = ""
    confidence: float = Field(default=0.3, ge=0, le=1)
    remedies: tuple[Remedy, ...] = ()


def select_lines(
    source: str | Path | Iterable[str], limit: int = MOST, *, catalogue: Catalogue | None = None
) -> list[tuple[int, str]]:
    """At most `limit` numbered lines in file order: candidates, what stands around them, the end."""
    catalogue = catalogue or load_catalogue()
    return select_from_log(read_log(source, catalogue), limit, catalogue=catalogue)


def select_from_log(
    log: Log, limit: int = MOST, *, catalogue: Catalogue | None = None
) -> list[tuple[int, str]]:
    """As `select_lines`, over a log that was read already."""
    evidence = Evidence.gather(log, catalogue or load_catalogue(), None, None)
    chosen: dict[int, str] = {}
    for no in _by_worth(evidence):
        line = log.get(no)
        if len(chosen) >= limit:
            break
        if line is not None and line.text.strip():
            chosen.setdefault(no, line.text[:LONGEST])
    return sorted(chosen.items())


def _by_worth(evidence: Evidence) -> Iterable[int]:
    roots = [one.line.no for one in find_candidates(evidence)[:6]]
    yield from roots
    for root in roots[:3]:
        yield from (root + step for step in (-1, 1, -2, 2, -3, 3, -4, 4))
    yield from (hit.line.no for hit in evidence.hits if hit.signature.kind == "symptom")
    yield from (line.no for line in reversed(evidence.log.lines[-12:]))
    yield from (hit.line.no for hit in evidence.hits if hit.signature.kind == "health")
    yield from (line.no for line in evidence.log.lines)


def accept_model_answer(
    log: str | Path | Iterable[str] | Log, answer: object, *, catalogue: Catalogue | None = None
) -> Diagnosis | None:
    """A model's answer as a diagnosis marked `by="model"`; None unless its class and its line really exist.

    `answer` is the parsed JSON. The line must stand in the log under its number, or word for word elsewhere.
    """
    catalogue = catalogue or load_catalogue()
    read = log if isinstance(log, Log) else read_log(log, catalogue)
    try:
        given = ModelAnswer.model_validate(answer)
        entry = catalogue.failure_class(given.failure_class)
    except (ValidationError, KeyError):
        return None
    line = read.get(given.line_no)
    if line is None or not _same(line.text, given.root_line):
        line = next((one for one in read.lines if _same(one.text, given.root_line)), None)
    if line is None or not line.text.strip():
        return None
    evidence = Evidence.gather(read, catalogue, None, None)
    return Diagnosis(
        failure_class=given.failure_class,
        confidence=min(given.confidence, MOST_CONFIDENT),
        root_line=line.text,
        line_no=line.no,
        stage=entry.stage or evidence.stage_at(line.no),
        remedies=given.remedies,
        explanation=given.explanation or f"{entry.means}; a language model points to line {line.no}.",
        by="model",
    )


def _same(text: str, quoted: str) -> bool:
    plain, wanted = _SPACES.sub(" ", text).strip(), _SPACES.sub(" ", quoted).strip()
    return bool(wanted) and (plain == wanted or (len(wanted) >= 40 and plain.startswith(wanted)))
