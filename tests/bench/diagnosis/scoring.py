"""The labelled cases and how an answer is scored against them; used by the tests and by the bench report."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moeagent.memory.records.diagnosis import Diagnosis, Remedy
from moeagent.tools.diagnosis import Catalogue, diagnose
from moeagent.tools.diagnosis.candidates import normal
from moeagent.tools.diagnosis.lines import clean, parse_line

FIXTURES = Path(__file__).parents[2] / "fixtures" / "diagnosis"
_CHOICE = {"add", "replace"}
"""Both are right for choice flags."""


@dataclass(frozen=True)
class Score:
    """One case against its label."""

    case: str
    right_class: bool
    right_family: bool
    right_root: bool
    right_remedy: bool
    first_remedy: bool
    healthy: bool
    benign: bool


def load_cases() -> list[dict[str, Any]]:
    """The 105 labelled cases."""
    with (FIXTURES / "crash_cases.jsonl").open(encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def score(case: dict[str, Any], answer: Diagnosis) -> Score:
    """Class, family, root line and remedies of an answer, right or wrong."""
    classes = [case["label"], *case["also_accepted_classes"]]
    roots = {_message(root) for root in (case["root_line"], *case["also_accepted_root_lines"])}
    return Score(
        case=case["id"],
        right_class=answer.failure_class in classes,
        right_family=_family(answer.failure_class) in {_family(one) for one in classes},
        right_root=answer.root_line is not None and _message(answer.root_line) in roots,
        right_remedy=any(_fits(remedy, case) for remedy in answer.remedies),
        first_remedy=bool(answer.remedies) and _fits(answer.remedies[0], case),
        healthy=answer.healthy,
        benign=case["label"] == "benign.none",
    )


def score_all(catalogue: Catalogue, *, without_own_class: bool = False) -> list[Score]:
    """Every case; `without_own_class` takes the signatures of the case's class away first."""
    narrowed: dict[str, Catalogue] = {}
    scores = []
    for case in load_cases():
        known = catalogue
        if without_own_class:
            known = narrowed.setdefault(case["label"], catalogue.without_class(case["label"]))
        scores.append(score(case, diagnose(case["log"], catalogue=known)))
    return scores


def share(scores: list[Score], field: str) -> float:
    """The share of cases for which a field is true."""
    return sum(getattr(one, field) for one in scores) / len(scores)


def _message(text: str) -> str:
    return normal(parse_line(1, clean(text)).body)


def _family(name: str) -> str:
    return name.partition(".")[0]


def _fits(remedy: Remedy, case: dict[str, Any]) -> bool:
    return any(
        remedy.target == wanted["target"]
        and (remedy.direction == wanted["direction"] or {remedy.direction, wanted["direction"]} <= _CHOICE)
        for wanted in case["remedy"]
    )
