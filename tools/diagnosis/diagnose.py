"""The diagnosis itself: a log in, one record out. Pure: the same text always gives the same answer."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from moeagent.memory.errors import InputError
from moeagent.memory.records.diagnosis import Alternative, Diagnosis, Stage
from moeagent.tools.diagnosis.candidates import Candidate, find_candidates, normal
from moeagent.tools.diagnosis.catalogue import Catalogue, load_catalogue
from moeagent.tools.diagnosis.evidence import Evidence
from moeagent.tools.diagnosis.explain import explanation
from moeagent.tools.diagnosis.lines import Line
from moeagent.tools.diagnosis.log import Log
from moeagent.tools.diagnosis.reading import read_log
from moeagent.tools.diagnosis.remedies import choose_remedies
from moeagent.tools.diagnosis.structure import weigh_classes
from moeagent.tools.diagnosis.symptoms import set_aside
from moeagent.tools.diagnosis.verdict import judge_without_cause

ENOUGH = 15.0
"""Score below which a candidate is noise: an unknown error counts, one that the server outlived does not."""


def diagnose(
    source: str | Path | Iterable[str],
    *,
    engine: str | None = None,
    stage: Stage | None = None,
    alive: bool | None = None,
    catalogue: Catalogue | None = None,
) -> Diagnosis:
    """Name the cause in a log.

    `source` is the log's text, a file, or its lines. `engine` and `stage` help where the log does not tell;
    `alive` says whether the process still runs, which tells a hang from a vanished process.
    Raises InputError for an unreadable source and for text that is no log.
    """
    catalogue = catalogue or load_catalogue()
    return diagnose_log(
        read_log(source, catalogue), engine=engine, stage=stage, alive=alive, catalogue=catalogue
    )


def diagnose_log(
    log: Log,
    *,
    engine: str | None = None,
    stage: Stage | None = None,
    alive: bool | None = None,
    catalogue: Catalogue | None = None,
) -> Diagnosis:
    """As `diagnose`, over a log that was read already. Raises InputError for text that is no log."""
    catalogue = catalogue or load_catalogue()
    evidence = Evidence.gather(log, catalogue, engine, stage)
    if not evidence.is_log:
        raise InputError("this is not a server's log: no line carries a stamp, a level or a known message")
    candidates = find_candidates(evidence)
    strong = [one for one in candidates if one.score >= ENOUGH]
    if strong:
        return _failure(strong, candidates, catalogue, evidence)
    return _no_cause(candidates, catalogue, evidence, alive)


def _failure(
    strong: Sequence[Candidate], candidates: Sequence[Candidate], catalogue: Catalogue, evidence: Evidence
) -> Diagnosis:
    best = strong[0]
    classes = [(best.failure_class, 10.0)] if best.failure_class else weigh_classes(best, catalogue, evidence)
    name = classes[0][0]
    best = replace(best, failure_class=name)
    stage = catalogue.failure_class(name).stage or _own_stage(best, evidence)
    symptoms = set_aside(best.line, candidates, evidence)
    return Diagnosis(
        failure_class=name,
        confidence=_confidence(best, strong, classes),
        root_line=best.line.text,
        line_no=best.line.no,
        stage=stage,
        ranks=_ranks(best.line, evidence),
        symptoms=symptoms,
        alternatives=_alternatives(name, strong, classes, catalogue),
        remedies=choose_remedies(best, name, catalogue, evidence),
        explanation=explanation(best, name, stage, symptoms, catalogue),
        by="signatures" if best.signature else "structure",
    )


def _no_cause(
    candidates: Sequence[Candidate], catalogue: Catalogue, evidence: Evidence, alive: bool | None
) -> Diagnosis:
    symptoms = set_aside(None, candidates, evidence)
    verdict = judge_without_cause(evidence, alive, [symptom.line_no for symptom in symptoms])
    root = verdict.root
    candidate = Candidate(root, verdict.failure_class, 0.0) if root else None
    stage = catalogue.failure_class(verdict.failure_class).stage or (
        evidence.stage_at(root.no) if root else "load"
    )
    healthy = verdict.failure_class == "benign.none"
    remedies = choose_remedies(candidate, verdict.failure_class, catalogue, evidence) if candidate else ()
    return Diagnosis(
        failure_class=verdict.failure_class,
        confidence=verdict.confidence,
        root_line=root.text if root else None,
        line_no=root.no if root else None,
        stage=stage,
        ranks=(),
        symptoms=symptoms,
        alternatives=() if healthy else _confusions(verdict.failure_class, 1 - verdict.confidence, catalogue),
        remedies=remedies,
        healthy=healthy,
        explanation=_told(verdict.failure_class, verdict.reason, root, catalogue),
        by="structure",
    )


def _told(name: str, reason: str, root: Line | None, catalogue: Catalogue) -> str:
    where = (
        f"line {root.no} is the last that shows it at work"
        if root and name != "benign.none"
        else "see the root line"
    )
    return f"{catalogue.failure_class(name).means}: {reason}. {where[0].upper()}{where[1:]}."


def _own_stage(best: Candidate, evidence: Evidence) -> Stage:
    signature = best.signature
    if signature is not None and signature.stage is not None:
        return signature.stage
    return evidence.stage_at(best.said_at or best.line.no)


def _ranks(root: Line, evidence: Evidence) -> tuple[str, ...]:
    message = normal(root.body)
    ranks = [_label(line, evidence) for line in evidence.log.lines if normal(line.body) == message]
    return tuple(dict.fromkeys(rank for rank in ranks if rank))


def _label(line: Line, evidence: Evidence) -> str:
    if line.stream or line.level or line.when:
        return line.stream
    owner = next(
        (above for above in evidence.log.upwards(line.no) if above.when or above.level or above.stream), None
    )
    return owner.stream if owner is not None else ""


def _confidence(best: Candidate, strong: Sequence[Candidate], classes: Sequence[tuple[str, float]]) -> float:
    if best.signature is None:
        total = sum(weight for _, weight in classes) or 1.0
        return round(0.2 + 0.3 * classes[0][1] / total, 2)
    rivals = [one for one in strong[1:] if one.failure_class not in (None, best.failure_class)]
    near = bool(rivals) and rivals[0].score >= best.score - 5
    return round(min(0.97, 0.45 + best.score / 180 + (0.0 if rivals else 0.08) - (0.15 if near else 0.0)), 2)


def _alternatives(
    name: str, strong: Sequence[Candidate], classes: Sequence[tuple[str, float]], catalogue: Catalogue
) -> tuple[Alternative, ...]:
    found: dict[str, float] = {}
    for other, weight in classes[1:4]:
        found.setdefault(other, round(0.05 * weight, 2))
    for one in strong[1:]:
        if one.failure_class and one.failure_class != name:
            found.setdefault(one.failure_class, round(one.score / 400, 2))
    for alternative in _confusions(name, 0.3, catalogue):
        found.setdefault(alternative.failure_class, alternative.confidence)
    found.pop(name, None)
    ordered = sorted(found.items(), key=lambda item: -item[1])
    return tuple(Alternative(failure_class=one, confidence=min(weight, 0.5)) for one, weight in ordered[:4])


def _confusions(name: str, share: float, catalogue: Catalogue) -> tuple[Alternative, ...]:
    others = catalogue.failure_class(name).confused_with
    return tuple(
        Alternative(failure_class=one, confidence=round(share / (1 + len(others)), 2)) for one in others
    )
