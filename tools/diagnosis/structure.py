"""The class of a failure that no signature knows, by its words, its exception type and its stack frames."""

from moeagent.tools.diagnosis.candidates import Candidate
from moeagent.tools.diagnosis.catalogue import Catalogue, Clue, compiled
from moeagent.tools.diagnosis.evidence import Evidence

FALLBACK = "runtime.engine_bug"
"""An exception that nothing explains is the engine's own until something says otherwise."""
NEAREST_FRAMES = 8
"""Stack frames next to the exception that tell what was being done; outer ones are the same in every log."""


def weigh_classes(candidate: Candidate, catalogue: Catalogue, evidence: Evidence) -> list[tuple[str, float]]:
    """Classes with the weight of their clues, best first; at least the fallback."""
    texts = _texts(candidate, evidence)
    weights: dict[str, float] = {FALLBACK: 0.5}
    for clue in catalogue.clues:
        if _points(clue, texts) and evidence.holds(clue.when, candidate.line, candidate.groups):
            weights[clue.failure_class] = weights.get(clue.failure_class, 0.0) + clue.weight
    return sorted(weights.items(), key=lambda item: -item[1])


def _texts(candidate: Candidate, evidence: Evidence) -> dict[str, tuple[str, ...]]:
    raised = candidate.raised
    frames = evidence.frames(candidate.line)[-2 * NEAREST_FRAMES :]
    if raised is None:
        return {"message": (candidate.line.body,), "frames": frames, "exception": ()}
    asserted = (raised.asserted.body,) if raised.asserted else ()
    return {
        "message": (raised.line.body, *asserted, *raised.continued),
        "frames": frames,
        "exception": (raised.type,),
    }


def _points(clue: Clue, texts: dict[str, tuple[str, ...]]) -> bool:
    pattern = compiled(clue.pattern)
    return any(pattern.search(text) for text in texts[clue.on])
