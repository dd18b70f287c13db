"""What the launches so far say about each lever: a Gaussian process over what the predictions missed.

A configuration's logarithmic speed is the sum of its levers' effects. A lever is one knob set to one value;
its prior is what the hypothesis that first pulled it predicted. Several levers pulled in one launch share its
surprise by their variances, and a launch without one of them tells them apart. A numeric knob has a slope
beside: what one of its values showed says something of the next.
"""

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from moeagent.agent.proposers.beliefs import Gain, interpolate
from moeagent.agent.proposers.candidate import Candidate
from moeagent.agent.proposers.history import UNTESTED, Trial, value
from moeagent.agent.proposers.layout import layout
from moeagent.agent.proposers.question import Question
from moeagent.agent.proposers.situation import goal_rung
from moeagent.agent.proposers.slopes import Slopes
from moeagent.agent.proposers.untested import contrary_gain, contrary_moves
from moeagent.memory.records import FlagValue, Hypothesis, Launch, ServerConfig

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LAUNCH_SD = 0.02
"""Launch noise that is assumed: one to two per cent is usual on a quiet host."""
INTERACTION_SD = 0.01
"""What a combination may differ from the sum of its levers."""
SLOPE_SD = 0.02
"""Effect of doubling a number, before any launch: of either sign."""
Z_ONE_IN_FOUR = 0.674
"""Standard deviations beyond which one value in four lies. Of what was adopted in company and never tested
apart that much is taken to be wrong: no measurement stands behind it."""
WRONG_BY = 0.12
"""Beliefs that promise more than this do not make the check of them worth more."""
UNKNOWN_LEVER = Gain(0.0, 0.03)
"""A knob that a remedy changed and no hypothesis spoke of."""
FOREIGN_IDEA = Gain(0.0, 0.3)
"""An idea of a language model or of the engineer: it may do anything, and its own word proves nothing."""
SURPRISE = 2.0
"""Deviations beyond which what was predicted is put in question itself, for all levers of the launch."""
ELSEWHERE = 0.7
"""Share of a lever's first uncertainty that comes back when the machine is laid out in another way."""
LEAST_MEAN = -0.9
DIGITS = 6
"""Figures are rounded, so that they are the same on every machine."""

Key = tuple[str, FlagValue | None]
"""A knob and its value; None when it is left out."""


class Lever(NamedTuple):
    """One knob at one value, on the logarithmic scale."""

    mean: float
    sd: float
    before: FlagValue | None
    """The value that it was pulled from."""


class Surrogate:
    """The levers of one campaign and what is known about them now."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._rung = goal_rung(question.view)
        self._levers: dict[Key, Lever] = {}
        for trial in question.past.trials:
            said, move = self._said(trial.hypothesis), trial.hypothesis.move
            for key, lever in self._pulled(trial.parent, trial.child, said, move):
                self._levers.setdefault(key, lever)
        for trial in question.past.trials:
            self._doubt_what_surprised(trial)
        self._measured = tuple(self._with_levers(x) for x in question.view.launches if x.rungs)
        self._slopes = Slopes(question, [launch.config for launch, _ in self._measured])
        self._order = sorted(self._levers, key=str)
        self._learnt = self._learn() if self._levers else None
        self._layouts: dict[Key, set[str]] = {}
        for launch, present in self._measured:
            here = layout(launch.config)
            for key in present:
                self._layouts.setdefault(key, set()).add(here)

    def _said(self, hypothesis: Hypothesis) -> Gain:
        """What the hypothesis promised of the levers that it pulled first."""
        if hypothesis.move == UNTESTED:
            return contrary_gain(contrary_moves(self._question, hypothesis.change), self._rung)
        said = next((p for p in hypothesis.predicted if p.concurrency == self._rung), None)
        own = hypothesis.source == "playbook"
        return Gain.between(said.low, said.high) if said and own else FOREIGN_IDEA

    def corrected(self, candidate: Candidate) -> Candidate:
        """The candidate with its gains as the launches so far let them appear."""
        gain = candidate.gains[self._rung]
        untried = candidate.together and not self._question.past.of_move(candidate.move)
        found = None if untried else self._posterior(candidate, gain)
        if found is None:
            return candidate
        if candidate.untested and found.mean < 0:
            found = found._replace(sd=max(found.sd, -found.mean / Z_ONE_IN_FOUR))
            candidate = candidate._replace(doubt=candidate.doubt * min(1.0, WRONG_BY / -found.mean))
        shift = found.mean - gain.mean
        gains = {c: Gain(g.mean + shift, found.sd) for c, g in candidate.gains.items()}
        return candidate._replace(gains=gains)

    def _posterior(self, candidate: Candidate, gain: Gain) -> Gain | None:
        """The child against the incumbent; None when no launch speaks of what changes."""
        import numpy as np

        incumbent = self._question.view.incumbent
        child = incumbent.apply(candidate.change)
        said = dict(self._pulled(incumbent, child, gain, candidate.move))
        own = said | self._levers
        before, after = (set(self._features(config, own)) for config in (incumbent, child))
        signs = np.array(self._row(after, child)) - np.array(self._row(before, incumbent))
        if self._learnt is None or not signs.any():
            return None
        new = [own[k] for k in after - before if k in own and k not in self._levers]
        effects, covariance = self._learnt
        log_gain = float(signs @ effects) + sum(lever.mean for lever in new)
        variance = float(signs @ covariance @ signs) + sum(lever.sd**2 for lever in new)
        for key in self._only_elsewhere(after - before, child):
            log_gain += said[key].mean - self._levers[key].mean if key in said else 0.0
            variance += (ELSEWHERE * self._levers[key].sd) ** 2
        sd = math.sqrt(max(variance, 0.0) + INTERACTION_SD**2)
        return Gain(round(math.expm1(log_gain), DIGITS), round(sd * math.exp(log_gain), DIGITS))

    def _only_elsewhere(self, keys: set[Key], child: ServerConfig) -> list[Key]:
        """Those of the levers that were measured, but never in this layout of the machine."""
        here = layout(child)
        known = sorted(keys & self._levers.keys() & self._layouts.keys(), key=str)
        return [key for key in known if here not in self._layouts[key]]

    def _doubt_what_surprised(self, trial: Trial) -> None:
        """Widen what was believed of each lever of a launch that nobody foresaw: any may be the cause."""
        if not trial.effect:
            return
        before, after = (set(self._features(c, self._levers)) for c in (trial.parent, trial.child))
        pulled = sorted((before ^ after) & self._levers.keys(), key=str)
        levers = [self._levers[k] for k in pulled]
        said = sum(self._levers[k].mean * (1 if k in after else -1) for k in pulled)
        missed = math.log1p(max(trial.effect, LEAST_MEAN)) - said
        variance = sum(lever.sd**2 for lever in levers) + 2 * LAUNCH_SD**2
        more = (missed / SURPRISE) ** 2 - variance
        if more > 0:
            for key, lever in zip(pulled, levers, strict=True):
                self._levers[key] = lever._replace(sd=math.sqrt(lever.sd**2 + more / len(pulled)))

    def _learn(self) -> "tuple[NDArray[np.float64], NDArray[np.float64]] | None":
        """Means and covariance of the levers' effects; None without a launch that has a value."""
        import numpy as np
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import DotProduct

        measured = self._rates()
        if not measured:
            return None
        levers = [self._levers[key] for key in self._order]
        means = np.array([*(lever.mean for lever in levers), *(0.0 for _ in self._slopes.flags)])
        sds = np.array([*(lever.sd for lever in levers), *(SLOPE_SD for _ in self._slopes.flags)])
        rows = np.array([self._row(present, config) for _, present, config in measured], dtype=float)
        missed = np.array([rate for rate, _, _ in measured]) - rows @ means
        process = GaussianProcessRegressor(
            kernel=DotProduct(sigma_0=1.0, sigma_0_bounds="fixed"),
            alpha=LAUNCH_SD**2 + INTERACTION_SD**2,
            optimizer=None,
        )
        process.fit(rows * sds, missed - missed.mean())
        found, covariance = process.predict(np.vstack([np.zeros(len(sds)), np.diag(sds)]), return_cov=True)
        less = np.hstack([-np.ones((len(sds), 1)), np.eye(len(sds))])
        return means + less @ found, less @ covariance @ less.T

    def _features(self, config: ServerConfig, levers: Mapping[Key, Lever]) -> Iterator[Key]:
        """The levers that lead from the baseline to the configuration, steps in between included."""
        baseline = self._question.view.baseline
        for knob in baseline.diff(config).knobs():
            seen: set[Key] = set()
            at: FlagValue | None = value(config, knob)
            while at != value(baseline, knob) and (knob, at) not in seen:
                seen.add((knob, at))
                yield knob, at
                lever = levers.get((knob, at))
                at = value(baseline, knob) if lever is None else lever.before

    def _pulled(
        self, parent: ServerConfig, child: ServerConfig, gain: Gain, move: str
    ) -> Iterator[tuple[Key, Lever]]:
        """The change's levers with their shares of what it was said to bring."""
        changed = self._changed(parent, child)
        weights = self._weights([knob for knob, _ in changed], move)
        total, spread = sum(weights.values()), math.hypot(*weights.values())
        log_mean = math.log1p(max(gain.mean, LEAST_MEAN))
        for knob, now in changed:
            lever = Lever(
                log_mean * weights[knob] / total, gain.sd * weights[knob] / spread, value(parent, knob)
            )
            yield (knob, now), lever

    def _changed(self, parent: ServerConfig, child: ServerConfig) -> list[Key]:
        """The levers that a change pulls: where it goes back to the baseline's value it pulls none."""
        baseline = self._question.view.baseline
        changed = ((k, value(child, k)) for k in parent.diff(child).knobs())
        return [(knob, now) for knob, now in changed if now != value(baseline, knob)]

    def _weights(self, knobs: Sequence[str], move: str) -> dict[str, float]:
        """How much of a surprise each knob may be the cause of, in proportion."""
        weights = dict.fromkeys(knobs, UNKNOWN_LEVER.sd)
        for part in move.split("+"):
            known = next((m for m in self._question.book.move if m.id == part), None)
            if known is None:
                continue
            names = (*known.set_flags, *known.set_env, *known.remove)
            touched = [k for k in knobs if any(k in self._question.spelling.all(name) for name in names)]
            sd = interpolate(known.effect, self._rung).sd
            weights.update(dict.fromkeys(touched, sd / math.sqrt(max(len(touched), 1))))
        return weights

    def _row(self, present: Container[Key], config: ServerConfig) -> list[float]:
        """How strongly each lever is pulled, and how far each numeric knob has moved."""
        return [*(float(key in present) for key in self._order), *self._slopes.doublings(config)]

    def _rates(self) -> tuple[tuple[float, frozenset[Key], ServerConfig], ...]:
        """Every launch's logarithm of output tok/s at the rung that the goal looks at, with its levers."""
        return tuple(
            (math.log(rung.output_tok_s), present, launch.config)
            for launch, present in self._measured
            for rung in launch.rungs
            if rung.concurrency == self._rung and rung.usable and rung.output_tok_s
        )

    def _with_levers(self, launch: Launch) -> tuple[Launch, frozenset[Key]]:
        return launch, frozenset(self._features(launch.config, self._levers))
