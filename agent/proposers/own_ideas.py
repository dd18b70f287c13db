"""The engineer's own hypotheses, from a file, before anybody else's: judged like any other.

[[idea]]
statement = "Give NCCL sixteen channels"
reason = "the fabric is idle between all-reduces"
set = ["NCCL_MIN_NCHANNELS=16"]
predicted = [{ concurrency = 256, effect = 0.1, low = 0.0, high = 0.2 }]
"""

import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from moeagent.agent.proposers.answer import AnswerError, ModelAnswer, change_of, draft_of
from moeagent.agent.proposers.beliefs import Gain
from moeagent.agent.proposers.playbook import Playbook
from moeagent.agent.proposers.protocol import Draft, Predictor, Proposal, Proposer
from moeagent.agent.proposers.question import Question
from moeagent.agent.proposers.view import CampaignView
from moeagent.memory.errors import InputError

UNTOLD = Gain(0.0, 0.05)
"""Stands in where neither the engineer nor the predictor gives a number."""


class OwnIdea(ModelAnswer):
    """One entry of the file: the fields of a model's answer, spelled strictly."""

    model_config = ConfigDict(extra="forbid")

    statement: str = Field(min_length=1)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    idea: list[OwnIdea] = Field(min_length=1)


def parse_ideas(text: str, name: str) -> tuple[OwnIdea, ...]:
    """The ideas of a TOML text; raises InputError that names the file and the entry."""
    try:
        return tuple(_File.model_validate(tomllib.loads(text)).idea)
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise InputError(f"{name} cannot be read as a list of [[idea]]: {error}") from error


def read_ideas(path: Path) -> tuple[OwnIdea, ...]:
    """The ideas of a file; raises InputError when it cannot be read."""
    try:
        return parse_ideas(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error


class OwnIdeasFirst:
    """Proposes the file's ideas in order, each once, then gives the turn to the next proposer."""

    def __init__(
        self,
        ideas: tuple[OwnIdea, ...],
        following: Proposer,
        playbook: Playbook,
        predictor: Predictor | None = None,
    ) -> None:
        self._ideas, self._following, self._playbook, self._predictor = ideas, following, playbook, predictor

    @property
    def name(self) -> str:
        """Both, for the log."""
        return f"own ideas, then {self._following.name}"

    def propose(self, view: CampaignView) -> Proposal:
        """The first idea that had no turn yet; raises InputError for one that is no change at all."""
        question = self._playbook.question(view)
        had = {h.statement for h in view.hypotheses}
        refused = [r.change for r in view.rejections]
        for number, idea in enumerate(self._ideas, start=1):
            draft = self._draft(idea, number, question)
            if draft.statement not in had and draft.change not in refused and not draft.change.is_empty():
                return draft
        return self._following.propose(view)

    def _draft(self, idea: OwnIdea, number: int, question: Question) -> Draft:
        try:
            change = change_of(idea, question)
            child = question.base.apply(change)
            told = self._predictor.predict_effects(question.base, child) if self._predictor else ()
            numbers = told or tuple(UNTOLD.at(c) for c in question.view.workload.ladder)
            draft = draft_of(idea, change, question, numbers)
        except AnswerError as error:
            raise InputError(f"idea {number} ({idea.statement[:60]}): {error}") from error
        return draft.model_copy(update={"source": "user"})
