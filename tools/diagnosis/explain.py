"""Two sentences for a person."""

from collections.abc import Sequence

from moeagent.memory.records.diagnosis import Stage, Symptom
from moeagent.tools.diagnosis.candidates import Candidate
from moeagent.tools.diagnosis.catalogue import Catalogue

STAGES: dict[Stage, str] = {
    "load": "while loading the model",
    "kv_pool": "while sizing the KV pool",
    "graph_capture": "while capturing CUDA graphs",
    "warmup": "during warm-up",
    "serving": "while serving",
    "client": "on the client's side",
    "host": "on the host",
}


def explanation(
    best: Candidate, name: str, stage: Stage, symptoms: Sequence[Symptom], catalogue: Catalogue
) -> str:
    """What failed and where, then why that line and not another."""
    means = catalogue.failure_class(name).means
    what = (
        best.signature.means
        if best.signature
        else "no known message; told by its words and its place in the log"
    )
    after = sum(symptom.line_no > best.line.no for symptom in symptoms)
    others = (
        f"{after} later message{'s' if after != 1 else ''} only report{'' if after != 1 else 's'} it"
        if after
        else ""
    )
    first = f"{means}, {STAGES[stage]}: {_clause(what)}."
    second = f"Line {best.line.no} is the cause{'; ' + others if others else ''}."
    return f"{first} {second}"


def _clause(text: str) -> str:
    return text.rstrip(".")
