"""How far off a figure may be: from what kind of knowledge it was made."""

import math

from moeagent.tools.predict import tables
from moeagent.tools.predict.batch import Setting
from moeagent.tools.predict.calibration import Calibration, factor_at
from moeagent.tools.predict.records import Estimate, RungPrediction
from moeagent.tools.predict.serving import Served

# Relative half-widths, one standard doubt each; they add in squares.
_BASE = 0.20
_CALIBRATED = 0.08
_BORROWED_KERNELS = 0.15
_UNLISTED_MODEL = 0.15
_SPECULATION = 0.15
_ALL_TO_ALL = 0.20
_TTFT = 0.50


def estimates(
    at: Setting, served: Served, calibration: Calibration, *, factor: float = 1.0
) -> RungPrediction:
    """The figures of one concurrency with intervals, corrected by this host's own measurements.

    factor is the published effect of flags that no formula describes.
    """
    speed = factor_at(calibration.speed, served.concurrency)
    drafted = calibration.speculation(at.settings, served.concurrency)
    delay = factor_at(calibration.ttft, served.concurrency)
    width = speed_doubt(at, calibrated=speed is not None)
    gain = factor * drafted * (speed or 1.0)
    return RungPrediction(
        concurrency=served.concurrency,
        running=served.running,
        output_tok_s=around(served.output_tok_s * gain, width),
        ttft_ms=around(served.ttft_ms * (delay or 1.0), _TTFT / (2 if delay else 1)),
        tpot_ms=around(served.tpot_ms / gain, width),
        limit=served.limit,
        why=served.why,
        terms_ms={name: round(ms, 3) for name, ms in served.terms_ms.items() if ms},
    )


def speed_doubt(at: Setting, *, calibrated: bool) -> float:
    """Relative half-width of a speed."""
    reference = tables.kernel_references()[at.spec.kernels]
    borrowed = reference.bandwidth_tb_s != at.spec.bandwidth_tb_s or reference.tflops != at.spec.tflops
    doubts = [_CALIBRATED if calibrated else _BASE]
    doubts += [_BORROWED_KERNELS] if borrowed and not calibrated else []
    doubts += [_UNLISTED_MODEL] if at.model.notes and not calibrated else []
    doubts += [_SPECULATION] if at.settings.spec_algorithm else []
    doubts += [_ALL_TO_ALL] if at.settings.has_a2a else []
    return math.hypot(*doubts)


def around(value: float, width: float) -> Estimate:
    """An interval that is symmetric on a ratio scale."""
    return Estimate(value=value, low=value / (1 + width), high=value * (1 + width))
