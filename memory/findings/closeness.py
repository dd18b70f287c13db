"""How near an earlier run's scope is to this one's, and how far what it found is believed here.

From exact to relaxed: the same everything, the same model, the same family of models, the same GPU. Findings
age with the engine's version. No measurement stands behind the factors: they are ranks.
"""

import math
import re
from typing import NamedTuple

from moeagent.memory.records import Scope

EXACT = 0.9
"""A measurement of the very same thing; noise is left."""
OTHER_LOAD = 0.8
"""Another workload or goal."""
OTHER_COUNT = 0.7
"""The same GPU, more or fewer of them."""
OTHER_GPU = 0.5
FAMILY = 0.7
"""Another model of the same family."""
OTHER_MODEL = 0.5
RELEASE = 0.7
"""Another major or minor version of the engine, or one that nobody knows."""
PATCH = 0.95
"""For each patch release between the two versions."""
OLDEST = 0.6
"""However many patch releases lie between."""
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")
_FAMILY = re.compile(r"[a-z]{2,}")
_VENDORS = frozenset({"meta", "nvidia", "unsloth"})
"""Names that stand before a model's own."""


class Closeness(NamedTuple):
    """One scope against another."""

    words: str
    """Such as "same model, engine 0.5.9 instead of 0.5.10"."""
    trust: float
    """0 to 1: how far a finding is believed; EXACT for the same scope, workload and goal."""


def closeness(theirs: Scope, mine: Scope, *, same_load: bool) -> Closeness:
    """How near a finding of `theirs` is to a run in `mine`."""
    parts = [_model(theirs, mine), _machine(theirs, mine), _age(theirs.engine_version, mine.engine_version)]
    if not same_load:
        parts.append(("another workload or goal", OTHER_LOAD))
    trust = EXACT * math.prod(factor for _, factor in parts)
    return Closeness(", ".join(said for said, _ in parts if said), round(trust, 3))


def family(model: str) -> str:
    """The name before the version: glm for GLM-5-NVFP4, qwen for Qwen3-30B-A3B."""
    words = _FAMILY.findall(model.lower())
    return next((word for word in words if word not in _VENDORS), model.lower())


def _model(theirs: Scope, mine: Scope) -> tuple[str, float]:
    if theirs.model == mine.model:
        return "same model", 1.0
    if family(theirs.model) == family(mine.model):
        return f"same family ({theirs.model})", FAMILY
    return f"another model ({theirs.model})", OTHER_MODEL


def _machine(theirs: Scope, mine: Scope) -> tuple[str, float]:
    if theirs.gpu != mine.gpu:
        return f"another GPU ({theirs.gpu})", OTHER_GPU
    if theirs.gpu_count != mine.gpu_count:
        return f"{theirs.gpu_count} of the same GPU", OTHER_COUNT
    return "same GPU", 1.0


def _age(theirs: str | None, mine: str | None) -> tuple[str, float]:
    """What the engine's version leaves of a finding."""
    if theirs == mine:
        return "", 1.0
    said = f"engine {theirs or 'of unknown version'} instead of {mine or 'unknown'}"
    old, new = (_VERSION.match(version or "") for version in (theirs, mine))
    if old is None or new is None or old.groups()[:2] != new.groups()[:2]:
        return said, RELEASE
    apart = abs(int(old[3] or 0) - int(new[3] or 0))
    return said, max(PATCH ** max(apart, 1), OLDEST)
