"""What is left to try after a run, in tiers of effort."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from moeagent.memory.records import Remedy, VerdictKind
from moeagent.memory.run_view import RunView


@dataclass(frozen=True)
class Tier:
    """Things of one size of effort."""

    name: str
    things: tuple[str, ...]


def tiers(view: RunView, ideas: Sequence[str] = ()) -> tuple[Tier, ...]:
    """Least effort first; tiers with nothing in them are left out. `ideas` are those of the playbook."""
    found = (
        Tier("More launches of what is there", tuple(_more_launches(view))),
        Tier("Another setting", (*_settings(view), *ideas)),
        Tier("Work outside the server's settings", tuple(_outside(view))),
    )
    return tuple(tier for tier in found if tier.things)


def resume_command(view: RunView) -> str:
    """The command that goes on from here."""
    return f"moeagent resume {shlex.quote(view.run)} --limit experiments=N"


def binding(view: RunView) -> tuple[str, ...]:
    """The limits that the measurements named last, one sentence each."""
    named = {limit.name: limit.evidence for limit in view.ledger.limits}
    return tuple(f"{name}: {evidence}" for name, evidence in named.items())


def _more_launches(view: RunView) -> list[str]:
    things = []
    for hypothesis in view.ledger.hypotheses:
        verdict = view.ledger.verdict(hypothesis.id)
        if verdict is None:
            things.append(f"{hypothesis.id} has no verdict yet: {hypothesis.statement}")
        elif verdict.kind in (VerdictKind.INCONCLUSIVE, VerdictKind.INVALID):
            things.append(f"{hypothesis.id} is {verdict.kind.value}: {verdict.reason}")
    conclusion = view.ledger.conclusion
    if view.best_verdict and conclusion and conclusion.confirmation in ("unresolved", "not-run"):
        why = conclusion.confirmation_reason or "no launch was left for it"
        things.append(f"Confirm the best configuration on fresh launches: {why}")
    return things


def _settings(view: RunView) -> list[str]:
    return _remedies(view, outside=False)


def _outside(view: RunView) -> list[str]:
    problems = view.ledger.facts.problems if view.ledger.facts else ()
    return [*_remedies(view, outside=True), *problems]


def _remedies(view: RunView, *, outside: bool) -> list[str]:
    """Remedies of failures that no pivot tried, of hypotheses that did not get over them."""
    tried = " ".join(pivot.remedy for pivot in view.ledger.pivots)
    things: dict[str, None] = {}
    for launch in view.ledger.launches:
        verdict = view.ledger.verdict(launch.hypothesis) if launch.hypothesis else None
        if launch.diagnosis is None or (verdict and verdict.kind is VerdictKind.IMPROVED):
            continue
        for remedy in launch.diagnosis.remedies:
            if (remedy.direction == "action") is outside and remedy.target not in tried:
                things[_sentence(launch.hypothesis or "the baseline", remedy)] = None
    return list(things)


def _sentence(who: str, remedy: Remedy) -> str:
    return f"For {who}, {remedy.direction} {remedy.target}: {remedy.change} ({remedy.why})"
