"""What this run and earlier runs already know about changes: tried, refuted, promising."""

from collections.abc import Iterator
from typing import NamedTuple

from moeagent.agent.proposers.layout import layout
from moeagent.agent.proposers.spelling import Spelling
from moeagent.agent.proposers.view import CampaignView
from moeagent.memory.records import ConfigChange, FlagValue, Hypothesis, ServerConfig, Verdict, VerdictKind

REFUTED = {
    VerdictKind.NEUTRAL,
    VerdictKind.REGRESSED,
    VerdictKind.BLOCKED,
    VerdictKind.INVALID,
    VerdictKind.NO_OP,
}
FINAL = {VerdictKind.BLOCKED, VerdictKind.INVALID, VerdictKind.NO_OP}
"""Verdicts that a changed incumbent does not put in question."""
# Chance that an idea is right after all which was tried before a change of the incumbent. No measurement
# stands behind these, so they are only ranks.
SECOND_LOOK_DOUBT = 0.3
HARMED_DOUBT = 0.3
ELSEWHERE_DOUBT = 0.8
TURN_BACK_DOUBT = 0.1
UNTESTED = "undo:untested"
"""The move that checks what is only believed, see untested.py."""
NOTICEABLE = 0.01
"""A winner below this effect speaks against more of the same."""


def value(config: ServerConfig, knob: str) -> FlagValue | None:
    """A flag's or a variable's value in the configuration; None when it is not set."""
    return config.flags.get(knob, config.env.get(knob))


class Trial(NamedTuple):
    """One judged hypothesis with the configurations on both sides."""

    hypothesis: Hypothesis
    verdict: Verdict
    parent: ServerConfig
    child: ServerConfig
    adopted: bool = False
    layout: str = ""

    @property
    def effect(self) -> float:
        """Measured effect on the goal, or else at the highest rung; 0 when there is none."""
        found = self.verdict.goal_effect or (self.verdict.effects[-1] if self.verdict.effects else None)
        return found.effect if found else 0.0

    @property
    def improved(self) -> bool:
        """Whether it became the incumbent."""
        return self.adopted or self.verdict.kind is VerdictKind.IMPROVED


class Past:
    """The view's history, indexed for the playbook."""

    def __init__(self, view: CampaignView, spelling: Spelling) -> None:
        self.view, self.spelling = view, spelling
        self.trials = tuple(self._trials())
        self._layout = layout(view.incumbent)
        self.tried = self._tried()
        self.rejected = tuple(self._normal(r.change) for r in view.rejections)

    def _trials(self) -> Iterator[Trial]:
        for hypothesis in self.view.hypotheses:
            verdict, parent = self.view.verdict(hypothesis.id), self.view.config(hypothesis.parent)
            if verdict is not None and parent is not None:
                adopted = hypothesis.id in self.view.adopted
                child = parent.apply(hypothesis.change)
                yield Trial(hypothesis, verdict, parent, child, adopted, layout(parent))

    def _tried(self) -> frozenset[str]:
        configs = [launch.config for launch in self.view.launches]
        configs += [self.view.incumbent, self.view.baseline, *(t.child for t in self.trials)]
        return frozenset(self.spelling.effective_key(c) for c in configs)

    def of_move(self, move: str) -> tuple[Trial, ...]:
        """Trials in which the move took part, alone or in a combination."""
        return tuple(t for t in self.trials if move in t.hypothesis.move.split("+"))

    def doubt(self, change: ConfigChange, child: ServerConfig, move: str) -> float:
        """Chance factor from history: 0 when the idea is out, 1 when nothing speaks against it."""
        if self.spelling.effective_key(child) in self.tried or self._normal(change) in self.rejected:
            return 0.0
        return self._own(change, move) * self._earlier(change)

    def _own(self, change: ConfigChange, move: str) -> float:
        doubt = 1.0
        wanted = self._normal(change)
        for trial in self.trials:
            alone = trial.hypothesis.move == move and "+" not in move
            same = self._normal(trial.hypothesis.change) == wanted
            if not (alone or same) or (trial.improved and trial.effect > NOTICEABLE):
                continue
            if trial.verdict.kind in FINAL or trial.parent.id == self.view.incumbent.id:
                return 0.0
            if trial.layout != self._layout:
                doubt *= ELSEWHERE_DOUBT
                continue
            doubt *= HARMED_DOUBT if trial.verdict.kind is VerdictKind.REGRESSED else SECOND_LOOK_DOUBT
        return doubt * (TURN_BACK_DOUBT if self._turns_back(change, move) else 1.0)

    def _turns_back(self, change: ConfigChange, move: str) -> bool:
        """Whether it takes back what this run adopted and still has, under another name than undoing.

        Of what the check of beliefs took back all at once, each part may be wanted again.
        """
        now = self.view.incumbent
        after = now.apply(change)
        return not move.startswith("undo:") and any(
            trial.improved and value(after, knob) == value(trial.parent, knob) != value(trial.child, knob)
            for trial in self.trials
            if trial.hypothesis.move != UNTESTED
            for knob in change.knobs()
            if value(now, knob) == value(trial.child, knob)
        )

    def _earlier(self, change: ConfigChange) -> float:
        doubt = 1.0
        wanted = self._normal(change)
        for prior in self.view.priors:
            if prior.kind not in REFUTED or self._normal(prior.change) != wanted:
                continue
            if prior.match == "exact":
                return 0.0
            doubt *= 1 - prior.weight
        return doubt

    def refusal(self, change: ConfigChange) -> str | None:
        """Why this change is out of the question for any proposer, None when it is not."""
        wanted = self._normal(change)
        for rejection, normal in zip(self.view.rejections, self.rejected, strict=True):
            if normal == wanted:
                return f"it was turned down in this run: {rejection.reason}"
        for trial in self.trials:
            if not trial.improved and self._normal(trial.hypothesis.change) == wanted:
                final = trial.verdict.kind in FINAL or trial.parent.id == self.view.incumbent.id
                if final:
                    return f"{trial.hypothesis.id} tried it: {trial.verdict.kind}, {trial.verdict.reason}"
        for prior in self.view.priors:
            refuted = prior.kind in REFUTED and prior.match == "exact"
            if refuted and self._normal(prior.change) == wanted:
                return f"run {prior.run} refuted it in this scope: {prior.kind}, {prior.reason}"
        return None

    def failures_in(self, category: str) -> int:
        """Trials of the category that did not pay since one last did."""
        count = 0
        for trial in self.trials:
            if trial.hypothesis.category == category:
                count = 0 if trial.improved else count + 1
        return count

    def walks(self, flag: str) -> Iterator[tuple[Trial, FlagValue, FlagValue]]:
        """Trials that moved this flag from one value to another, in order."""
        for trial in self.trials:
            after = self.spelling.find(flag, trial.hypothesis.change.set_flags)
            before = self.spelling.find(flag, trial.parent.flags)
            if after and before:
                yield trial, trial.parent.flags[before], trial.hypothesis.change.set_flags[after]

    def _normal(self, change: ConfigChange) -> ConfigChange:
        return change.model_copy(
            update={
                "set_flags": {self.spelling.canonical(k): v for k, v in sorted(change.set_flags.items())},
                "remove_flags": tuple(sorted(self.spelling.canonical(k) for k in change.remove_flags)),
            }
        )
