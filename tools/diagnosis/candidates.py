"""Possible root lines and how much each explains, judged by the whole log around it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from moeagent.tools.diagnosis.catalogue import Refinement, RemedyRule, Signature
from moeagent.tools.diagnosis.evidence import Evidence
from moeagent.tools.diagnosis.exceptions import Raised
from moeagent.tools.diagnosis.lines import Line
from moeagent.tools.diagnosis.matching import Hit, extract

TOLD_QUIETLY = 25
"""Taken off a cause that the program itself printed as a warning or less."""
WRAPS = 30
"""Taken off an exception that was raised while another was handled: the inner one is the cause."""
OUTLIVED = 60
"""Taken off a failure after which the server went on to its next stage."""
HEADLINE = 10
"""Taken off a message that a headline quotes: the exception's own line follows."""
UNKNOWN_EXCEPTION = 40
UNKNOWN_ERROR_LINE = 20
ALIKE, MOST_OF_ONE, MOST_UNKNOWN = 3, 24, 200
"""Candidates with the same message, of one signature, and without any: later ones repeat earlier ones."""
HANDLED_TYPES = frozenset({"KeyError", "AttributeError", "Empty", "StopIteration", "FileNotFoundError"})
"""Types that programs raise and handle as a matter of course: inside a chain they name no cause."""
_ARGUMENT = re.compile(r"(?:server_args\(?\)?|self|args)\.(?P<name>[a-z]+_[a-z_0-9]+)")
_ERROR_WORDS = re.compile(
    r"(?i)\b(?:error|fatal|failed|failure|abort(?:ed|ing)?|assert(?:ion)?|cannot|can't|unable|panic"
    r"|terminate called)\b"
)


@dataclass(frozen=True)
class Candidate:
    """One line that may be the cause."""

    line: Line
    failure_class: str | None
    """None until the structural reasoning names one."""
    score: float
    signature: Signature | None = None
    raised: Raised | None = None
    groups: dict[str, str] = field(default_factory=dict)
    remedies: tuple[RemedyRule, ...] = ()
    """Remedies of the refinement that applied; they come first."""
    outlived: bool = False
    said_at: int = 0
    """Line number where the message that led here stands, when the root is another line."""


def find_candidates(evidence: Evidence) -> list[Candidate]:
    """All candidates, best first; among equals the earliest, since what came first caused the rest."""
    found = [*_known(evidence), *_unknown(evidence)]
    return sorted(found, key=lambda one: (-one.score, one.line.no))


def _known(evidence: Evidence) -> Iterator[Candidate]:
    judged: dict[tuple[str, str], int] = {}
    of_signature: dict[str, int] = {}
    for hit in evidence.hits:
        if hit.signature.kind != "cause":
            continue
        key = (hit.signature.id, normal(hit.line.body))
        judged[key] = judged.get(key, 0) + 1
        of_signature[hit.signature.id] = of_signature.get(hit.signature.id, 0) + (judged[key] <= ALIKE)
        if judged[key] <= ALIKE and of_signature[hit.signature.id] <= MOST_OF_ONE:
            yield _judge(hit, evidence)


def _judge(hit: Hit, evidence: Evidence) -> Candidate:
    raised = evidence.raised_for(hit.line)
    groups = extract(hit.signature, hit.line, _continuation(hit.line, raised, evidence))
    root = hit.line
    if raised is not None and raised.asserted is not None and raised.line.no == root.no:
        root = raised.asserted
        groups = {**groups, **_flag_in(root.body)}
    candidate = Candidate(
        root,
        hit.signature.failure_class,
        hit.signature.weight,
        hit.signature,
        raised,
        groups,
        said_at=hit.line.no,
    )
    for refinement in hit.signature.refine:
        if evidence.holds(refinement.when, hit.line, groups):
            candidate = _refined(candidate, refinement, evidence)
            break
    return _weighed(candidate, evidence)


def _flag_in(code: str) -> dict[str, str]:
    """The flag whose attribute an assertion reads, as it is spelt on the command line."""
    match = _ARGUMENT.search(code)
    return {"asserted": match["name"].replace("_", "-")} if match else {}


def _refined(candidate: Candidate, refinement: Refinement, evidence: Evidence) -> Candidate:
    root = evidence.seen(refinement.root) if refinement.root else None
    return replace(
        candidate,
        line=root or candidate.line,
        failure_class=refinement.failure_class or candidate.failure_class,
        score=candidate.score if refinement.weight is None else refinement.weight,
        remedies=refinement.remedies,
    )


def _continuation(line: Line, raised: Raised | None, evidence: Evidence) -> Sequence[str]:
    if raised is not None:
        return (raised.message, *raised.continued)
    below = evidence.log.around(line.no, 0, 4)
    return [one.body for one in below if one.no > line.no]


def _unknown(evidence: Evidence) -> Iterator[Candidate]:
    told = {hit.line.no for hit in evidence.hits if hit.signature.kind != "health"} | evidence.hidden
    unknown = [(no, raised) for no, raised in evidence.raised.items() if no not in told]
    for no, raised in unknown[:MOST_UNKNOWN]:
        line = raised.asserted or raised.line
        yield _weighed(Candidate(line, None, UNKNOWN_EXCEPTION, raised=raised, said_at=no), evidence)
    repeated: dict[str, int] = {}
    for line in evidence.log.lines:
        if line.no in told or line.no in evidence.raised or not _calls_itself_error(line):
            continue
        key = normal(line.body)
        repeated[key] = repeated.get(key, 0) + 1
        if repeated[key] <= 2 and len(repeated) <= MOST_UNKNOWN:
            yield _weighed(Candidate(line, None, UNKNOWN_ERROR_LINE, said_at=line.no), evidence)


def _calls_itself_error(line: Line) -> bool:
    if line.quiet or line.body.startswith((" ", "\t", "Traceback (most recent call last)")):
        return False
    return line.level in ("ERROR", "CRITICAL", "FATAL") or _ERROR_WORDS.search(line.body[:400]) is not None


def _weighed(candidate: Candidate, evidence: Evidence) -> Candidate:
    score, signature, raised = candidate.score, candidate.signature, candidate.raised
    survivable = signature is not None and signature.survivable
    if candidate.line.quiet and not (signature and signature.printed_quietly):
        score -= TOLD_QUIETLY
    if raised is None and _quotes_exception(candidate.line, evidence):
        score -= HEADLINE
    if raised is not None and raised.cause_no is not None and _inner_counts(raised, evidence):
        score -= WRAPS
    if signature is None and raised is not None and raised.type in HANDLED_TYPES and not raised.frames:
        score -= 5
    outlived = not survivable and _went_on_after(candidate.said_at, evidence)
    return replace(candidate, score=score - OUTLIVED * outlived, outlived=outlived)


def _quotes_exception(line: Line, evidence: Evidence) -> bool:
    """Whether the line repeats the message of an exception that the log prints in its own place."""
    if any(hit.signature.headline for hit in evidence.by_line.get(line.no, ())):
        return True
    return any(len(one.message) >= 12 and one.message in line.body for one in evidence.raised.values())


def _inner_counts(raised: Raised, evidence: Evidence) -> bool:
    inner = evidence.raised.get(raised.cause_no or 0)
    if inner is None:
        return False
    if inner.type not in HANDLED_TYPES or raised.direct:
        return True
    return any(hit.signature.kind == "cause" for hit in evidence.by_line.get(inner.line.no, ()))


def _went_on_after(no: int, evidence: Evidence) -> bool:
    """Whether the same launch reached a later stage, or served requests and none failed, after line `no`."""
    launches = [line.no for line in evidence.marks("launch") if line.no > no]
    until = launches[0] if launches else evidence.log.total + 1
    if any(no < line.no < until for line in evidence.marks("ended", "failed_request", "stalled")):
        return _later_stage(no, until, evidence)
    return _later_stage(no, until, evidence) or any(
        no < line.no < until for line in evidence.marks("served", "ready")
    )


def _later_stage(no: int, until: int, evidence: Evidence) -> bool:
    order = ("load", "kv_pool", "graph_capture", "warmup", "serving")
    now, line = evidence.stage_at(no), evidence.log.get(no)
    own = line.stream if line else ""
    passed = [m for m in evidence.marks("progress") if m.stream in ("", own) or not own] + evidence.marks(
        "ready"
    )
    later = [evidence.stage_at(mark.no) for mark in passed if no < mark.no < until]
    return now in order and any(stage in order and order.index(stage) > order.index(now) for stage in later)


_VARYING = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")


def normal(body: str) -> str:
    """A message without what varies between ranks and repeats: numbers and addresses."""
    return _VARYING.sub("#", body.strip())
