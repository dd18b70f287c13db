"""Speculative decoding: tokens per verification, and what the draft costs."""

from moeagent.tools.predict import tables
from moeagent.tools.predict.batch import Batch, Setting
from moeagent.tools.predict.forward import forward_us
from moeagent.tools.predict.settings import EngineSettings

_LOOKUP = ("NGRAM", "SUFFIX")


def accepted_tokens(settings: EngineSettings) -> float:
    """Expected tokens per verification: 1 + p + p^2 + ... over the draft's steps."""
    if settings.spec_algorithm is None:
        return 1.0
    lookup = settings.spec_algorithm.upper() in _LOOKUP
    chance = tables.constant("acceptance_lookup" if lookup else "acceptance")
    return sum(chance**i for i in range(settings.draft_steps + 1))


def draft_us(at: Setting, batch: Batch) -> float:
    """Microseconds of one round of drafting: per step one layer, the head, and a fixed part."""
    if (at.settings.spec_algorithm or "").upper() in _LOOKUP:
        return 0.0
    one = batch.model_copy(update={"tokens_each": 1.0})
    terms = forward_us(at, one)
    layer = sum(us for name, us in terms.items() if name not in ("head", "host")) / at.model.layers
    return at.settings.draft_steps * (layer + terms["head"] + tables.constant("draft_step_us"))
