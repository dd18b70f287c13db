"""What to change next, in order: the message's own remedies, the component at fault, then the class's."""

import re
from collections.abc import Iterator, Mapping

from moeagent.memory.records.diagnosis import Direction, Remedy
from moeagent.tools.diagnosis.candidates import Candidate
from moeagent.tools.diagnosis.catalogue import Catalogue, RemedyRule, Step, compiled
from moeagent.tools.diagnosis.evidence import Evidence
from moeagent.tools.diagnosis.matching import number

MOST = 8
"""Remedies in an answer: each is one attempt, and attempts are bounded."""
_FIELD = re.compile(r"\{(\w+)\}")
_UNSAFE = re.compile(r"[^\w.,:/+=@%~ -]")
_LONGEST = 80
MARGIN = 0.01
"""Share of GPU memory freed beyond the shortfall, so that the next allocation of the same size fits too."""


def choose_remedies(
    candidate: Candidate, failure_class: str, catalogue: Catalogue, evidence: Evidence
) -> tuple[Remedy, ...]:
    """The remedies whose conditions hold, without repeats of a target and direction."""
    facts = {**evidence.flags, **candidate.groups}
    chosen: dict[tuple[str, str], Remedy] = {}
    for rule, source in _rules(candidate, failure_class, catalogue, evidence):
        if not evidence.holds(rule.when, candidate.line, candidate.groups):
            continue
        remedy = _filled(rule, source, facts, evidence.flags)
        if remedy is not None:
            chosen.setdefault((remedy.target, remedy.direction), remedy)
    return tuple(chosen.values())[:MOST]


def _rules(
    candidate: Candidate, failure_class: str, catalogue: Catalogue, evidence: Evidence
) -> Iterator[tuple[RemedyRule, str]]:
    signature = candidate.signature
    own = signature is not None and signature.failure_class == failure_class
    for rule in candidate.remedies:
        yield rule, signature.source if signature else ""
    if signature is not None and own:
        yield from ((rule, signature.source) for rule in signature.remedies)
    frames = evidence.frames(candidate.line)
    for component in catalogue.components:
        fits = "any" in component.engine or evidence.engine in component.engine
        concerned = any(failure_class.startswith(prefix) for prefix in component.classes)
        pattern = compiled(component.frames)
        if fits and concerned and any(pattern.search(text) for text in (*frames[-24:], candidate.line.body)):
            yield from ((rule, component.source) for rule in component.remedies)
    if signature is not None and not own:
        yield from ((rule, signature.source) for rule in signature.remedies)
    entry = catalogue.failure_class(failure_class)
    yield from ((rule, entry.source) for rule in entry.remedies)


def _filled(
    rule: RemedyRule, source: str, facts: Mapping[str, str], flags: Mapping[str, str]
) -> Remedy | None:
    value = step_value(rule.step, facts, flags) if rule.step else None
    texts = [_fill(text, facts) for text in (rule.target, rule.change, rule.why)]
    if any(text is None for text in texts):
        return None
    target, change, why = (text or "" for text in texts)
    if rule.step and value is not None:
        change = f"{change}: {flags.get(rule.step.flag)} -> {value:g}"
    templated = _fill(rule.value, facts) if rule.value else None
    return Remedy(
        target=target,
        direction=_direction(rule, target, flags),
        change=change,
        why=why,
        source=rule.source or source,
        value=value if value is not None else templated,
    )


def _direction(rule: RemedyRule, target: str, flags: Mapping[str, str]) -> Direction:
    if not rule.choice:
        return rule.direction
    current = flags.get(target.lstrip("-").replace("-", "_"), "None")
    return "add" if current in ("None", "auto", "") and rule.direction == "add" else "replace"


def _fill(template: str, facts: Mapping[str, str]) -> str | None:
    """The template with facts put in as plain text; None when a fact is missing."""
    names = _FIELD.findall(template)
    if any(name not in facts for name in names):
        return None
    return _FIELD.sub(lambda m: _UNSAFE.sub("", facts[m[1]])[:_LONGEST].strip(), template)


def step_value(step: Step, facts: Mapping[str, str], flags: Mapping[str, str]) -> float | None:
    """The flag's next value, always on the step's side of the present one; None when it cannot move."""
    current = number(flags.get(step.flag, ""))
    if current is None:
        return None
    by = step.by
    if step.shortfall is not None and (share := _shortfall(step.shortfall, facts)) is not None:
        by = min(by, -share) if by < 0 else max(by, share)
    moved = round(current * step.factor + by, 3)
    if step.floor is not None:
        moved = max(moved, step.floor)
    if step.ceiling is not None:
        moved = min(moved, step.ceiling)
    grows = by > 0 or step.factor > 1
    return moved if (moved > current if grows else moved < current) else None


def _shortfall(names: tuple[str, str, str], facts: Mapping[str, str]) -> float | None:
    requested, free, total = (number(facts.get(name, "")) for name in names)
    if requested is None or free is None or not total:
        return None
    return max(0.0, (requested - free) / total) + MARGIN
