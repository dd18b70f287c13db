"""How well predicted effects held."""

from collections.abc import Sequence
from statistics import fmean

from moeagent.memory.records import Effect, PredictedEffect, PredictionScore, Record

NOTHING = 0.01
"""Effects smaller than this are called no effect when signs are compared."""


class Calibration(Record):
    """Over all scored predictions of a campaign."""

    scored: int
    inside: float
    """Fraction of measured effects inside the predicted range."""
    sign_right: float
    """Fraction with the right sign."""
    bias: float
    """Mean of predicted minus measured: 0.05 is five points too hopeful."""
    mean_error: float
    """Mean absolute difference of predicted and measured."""


def prediction_scores(
    predicted: Sequence[PredictedEffect], measured: Sequence[Effect]
) -> tuple[PredictionScore, ...]:
    """One score for each concurrency that was both predicted and measured."""
    by_concurrency = {effect.concurrency: effect.effect for effect in measured}
    return tuple(
        _score(p, by_concurrency[p.concurrency]) for p in predicted if p.concurrency in by_concurrency
    )


def _score(predicted: PredictedEffect, measured: float) -> PredictionScore:
    return PredictionScore(
        concurrency=predicted.concurrency,
        predicted=predicted.effect,
        measured=measured,
        inside=predicted.low <= measured <= predicted.high,
        sign_right=_sign(predicted.effect) == _sign(measured),
    )


def _sign(effect: float) -> int:
    return 0 if abs(effect) < NOTHING else (1 if effect > 0 else -1)


def calibration(scores: Sequence[PredictionScore]) -> Calibration | None:
    """Summary of the scores; None when there are none."""
    if not scores:
        return None
    errors = [s.predicted - s.measured for s in scores]
    return Calibration(
        scored=len(scores),
        inside=fmean(s.inside for s in scores),
        sign_right=fmean(s.sign_right for s in scores),
        bias=fmean(errors),
        mean_error=fmean(abs(e) for e in errors),
    )
