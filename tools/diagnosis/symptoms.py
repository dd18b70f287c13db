"""Lines that look like the cause and are not, each with the reason why it was set aside."""

import re
from collections.abc import Iterator, Sequence

from moeagent.memory.records.diagnosis import Symptom
from moeagent.tools.diagnosis.candidates import Candidate, normal
from moeagent.tools.diagnosis.evidence import Evidence
from moeagent.tools.diagnosis.lines import Line

MOST = 24
LONGEST = 500
"""Characters of a line kept in a symptom."""
_ALARMING = re.compile(
    r"(?i)error|fail|fatal|exception|abort|crash|killed|out of memory|oom\b|timeout|warning|refused"
)


def set_aside(root: Line | None, candidates: Sequence[Candidate], evidence: Evidence) -> tuple[Symptom, ...]:
    """The alarming lines besides the root, one entry per message, in file order."""
    found: dict[str, Symptom] = {}
    same = normal(root.body) if root else None
    for line, reason in sorted(_suspects(root, candidates, evidence), key=lambda item: item[0].no):
        if root is not None and line.no == root.no:
            continue
        key = normal(line.body)
        why = f"the same failure as line {root.no}, seen again" if root and key == same else reason
        found.setdefault(key, Symptom(line_no=line.no, line=line.text[:LONGEST], reason=why))
    return tuple(sorted(found.values(), key=lambda symptom: symptom.line_no)[:MOST])


def _suspects(
    root: Line | None, candidates: Sequence[Candidate], evidence: Evidence
) -> Iterator[tuple[Line, str]]:
    for hit in evidence.hits:
        kind = hit.signature.kind
        if kind == "symptom" or (kind == "benign" and _alarms(hit.line)):
            yield hit.line, hit.signature.means
    for candidate in candidates:
        yield candidate.line, _reason(candidate, root)


def _alarms(line: Line) -> bool:
    return line.level in ("WARNING", "WARN", "ERROR", "CRITICAL") or _ALARMING.search(line.body) is not None


def _reason(candidate: Candidate, root: Line | None) -> str:
    means = candidate.signature.means if candidate.signature else "an error that no signature knows"
    if candidate.outlived:
        return f"the server went on after it: {means}"
    if root is None:
        return means
    if candidate.raised is not None and candidate.raised.cause_no is not None:
        return "raised while an earlier exception was handled: it reports that one"
    return (
        f"comes after line {root.no}: {means}" if candidate.line.no > root.no else f"explains less: {means}"
    )
