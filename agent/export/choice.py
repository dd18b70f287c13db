"""Which launch of a run is exported, and what may be said of it."""

from dataclasses import dataclass

from moeagent.agent.show.text import effect_text, rate
from moeagent.memory.errors import InputError
from moeagent.memory.records import Launch, LaunchOutcome, ServerConfig
from moeagent.memory.run_view import RunView

BASELINE = "baseline"


@dataclass(frozen=True, slots=True)
class Choice:
    """A launch and what it rests on."""

    launch: Launch
    why: str
    warning: str = ""
    """What the user must know before he trusts it; empty when there is nothing."""


def chosen(view: RunView, experiment: str = "") -> Choice:
    """The champion of the run; its baseline where no gain is proven; or any experiment by id.

    `experiment` is a hypothesis (H3), a launch (L12) or `baseline`. Raises InputError where the run has none.
    """
    if experiment:
        return _named(view, experiment)
    baseline, best, gain = view.ledger.baseline, view.best, view.gain
    if baseline is None or best is None:
        raise InputError(f"run {view.run} has launched nothing yet: there is no command to export")
    hypothesis = view.ledger.incumbent.hypothesis if view.ledger.incumbent else None
    if hypothesis and gain:
        why = f"the best configuration, {hypothesis}: {effect_text(gain)} {view.gain_source}"
        return Choice(_measured(view, best), why, _unconfirmed(view))
    tried = f"; {hypothesis} was built on without proof: --experiment {hypothesis}" if hypothesis else ""
    warning = f"no change is proven better than the baseline, so this is the baseline{tried}"
    return Choice(_measured(view, baseline), "the baseline", warning)


def measured_text(launch: Launch) -> str:
    """Output tok/s by concurrency."""
    rungs = [f"{rung.concurrency}: {rate(rung.output_tok_s)}" for rung in launch.rungs if rung.usable]
    return "output tok/s by concurrency: " + (", ".join(rungs) or "nothing was measured")


def _unconfirmed(view: RunView) -> str:
    conclusion = view.ledger.conclusion
    if conclusion is not None and conclusion.confirmation == "confirmed":
        return ""
    reason = (
        conclusion.confirmation_reason if conclusion and conclusion.confirmation_reason else "none were made"
    )
    return f"the gain is the verdict's; fresh launches did not confirm it: {reason}"


def _measured(view: RunView, config: ServerConfig) -> Launch:
    """The last whole launch of a configuration, else the last."""
    launches = view.ledger.launches_of(config)
    if not launches:
        raise InputError(
            f"run {view.run} has not launched this configuration yet: there is no command to export"
        )
    return _last_whole(launches)


def _last_whole(launches: list[Launch]) -> Launch:
    whole = [launch for launch in launches if launch.outcome is LaunchOutcome.COMPLETED]
    return (whole or launches)[-1]


def _named(view: RunView, experiment: str) -> Choice:
    ledger = view.ledger
    by_hypothesis = ledger.launches_for(None if experiment == BASELINE else experiment)
    launches = by_hypothesis or [launch for launch in ledger.launches if launch.id == experiment]
    if not launches:
        known = [BASELINE, *(h.id for h in ledger.hypotheses if ledger.launches_for(h.id))]
        raise InputError(
            f"run {view.run} launched no experiment {experiment!r}: it has {', '.join(known)} and launches "
            f"L1 to L{len(ledger.launches)}"
        )
    launch = _last_whole(launches)
    verdict = ledger.verdict(launch.hypothesis) if launch.hypothesis else None
    why = f"{launch.hypothesis}: {verdict.kind.value}, {verdict.reason}" if verdict else experiment
    died = launch.outcome is not LaunchOutcome.COMPLETED
    return Choice(launch, why, f"this launch ended as {launch.outcome.value}" if died else "")
