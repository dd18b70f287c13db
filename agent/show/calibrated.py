"""How well the predictions of a run held."""

from collections.abc import Sequence

from moeagent.memory.records import PredictionScore
from moeagent.memory.run_view import RunView
from moeagent.tools.stats.calibration import calibration

Scores = Sequence[tuple[str, PredictionScore]]


def scores(view: RunView) -> list[tuple[str, PredictionScore]]:
    """Every scored prediction with its hypothesis."""
    verdicts = [(h.id, view.ledger.verdict(h.id)) for h in view.ledger.hypotheses]
    return [(name, score) for name, verdict in verdicts if verdict for score in verdict.predictions]


def calibration_sentence(found: Scores) -> str:
    """The calibration in words; empty when nothing was scored."""
    total = calibration([score for _, score in found])
    if total is None:
        return ""
    side = "high" if total.bias > 0 else "low"
    error, bias = total.mean_error * 100, abs(total.bias) * 100
    return (
        f"{total.inside:.0%} of {total.scored} predictions hold the measured effect in their range, "
        f"{total.sign_right:.0%} have the right sign. The mean distance is {error:.1f} points; "
        f"predictions are on average {bias:.1f} points too {side}."
    )
