"""Narrowing a hypothesis log to what was asked for."""

from difflib import get_close_matches

from moeagent.memory.errors import InputError
from moeagent.memory.records import Hypothesis, VerdictKind
from moeagent.memory.run_view import RunView


def keep_only(view: RunView, *, verdict: str = "", flag: str = "") -> RunView:
    """The view with only the hypotheses that match. Raises InputError for a verdict that does not exist."""
    verdict_named(verdict)
    view.ledger.hypotheses = [h for h in view.ledger.hypotheses if _matches(view, h, verdict, flag)]
    return view


def keep_last(view: RunView, count: int) -> int:
    """Keep the last hypotheses, launches of these, of baseline and best; returns how many are left out."""
    everything = view.ledger.hypotheses
    view.ledger.hypotheses = everything[-count:]
    best = view.ledger.incumbent.hypothesis if view.ledger.incumbent else None
    kept = {None, best, *(h.id for h in view.ledger.hypotheses)}
    view.ledger.launches = [launch for launch in view.ledger.launches if launch.hypothesis in kept]
    return len(everything) - len(view.ledger.hypotheses)


def verdict_named(name: str) -> VerdictKind | None:
    """The verdict of this name; None for no name. Raises InputError for one that does not exist."""
    if not name:
        return None
    try:
        return VerdictKind(name)
    except ValueError:
        near = get_close_matches(name, list(VerdictKind), n=1)
        known = f"did you mean {str(near[0])!r}?" if near else f"verdicts are {', '.join(VerdictKind)}"
        raise InputError(f"--verdict {name}: {known}") from None


def _matches(view: RunView, hypothesis: Hypothesis, verdict: str, flag: str) -> bool:
    found = view.ledger.verdict(hypothesis.id)
    right_verdict = not verdict or (found is not None and found.kind == verdict)
    names = {name.lstrip("-") for name in hypothesis.change.knobs()}
    return right_verdict and (not flag or flag.lstrip("-") in names)
