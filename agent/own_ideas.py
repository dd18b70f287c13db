"""The engineer's own hypotheses, tried first and judged like any other."""

from moeagent.agent.proposers.drafting import CANARY_RISK, canary
from moeagent.agent.proposers.protocol import Draft, Predictor, Proposal, Proposer
from moeagent.agent.proposers.view import CampaignView
from moeagent.agent.settings import OwnIdea
from moeagent.memory.errors import InputError
from moeagent.memory.records import ConfigChange
from moeagent.tools.engines.protocol import EngineInstall


class OwnIdeasFirst:
    """Proposes the engineer's ideas in order, then lets another proposer have the turn."""

    def __init__(self, ideas: tuple[OwnIdea, ...], then: Proposer, predictor: Predictor) -> None:
        self._ideas = ideas
        self._then = then
        self._predictor = predictor

    @property
    def name(self) -> str:
        """Both, for the log."""
        return f"the engineer, then {self._then.name}"

    def propose(self, view: CampaignView) -> Proposal:
        """The first idea that was neither launched nor turned down yet."""
        seen = [h.change for h in view.hypotheses] + [r.change for r in view.rejections]
        idea = next((i for i in self._ideas if change_of(i) not in seen), None)
        return self._draft(idea, view) if idea else self._then.propose(view)

    def _draft(self, idea: OwnIdea, view: CampaignView) -> Draft:
        change = change_of(idea)
        child = view.incumbent.apply(change)
        risk, why = self._predictor.risk(child)
        return Draft(
            statement=idea.statement or " ".join(change.knobs()),
            reason=idea.reason or "an idea of the engineer",
            change=change,
            parent=view.incumbent.id,
            predicted=() if idea.install else self._predictor.predict_effects(view.incumbent, child),
            refuted_by=f"an effect on {view.goal.name} whose interval lies below {view.goal.min_effect:+.0%}",
            category="own idea",
            risk=round(risk, 3),
            risk_why=why,
            source="user",
            canary=canary(view.workload.ladder) if risk >= CANARY_RISK else (),
        )


def change_of(idea: OwnIdea) -> ConfigChange:
    """The idea as a change of the incumbent."""
    return ConfigChange(
        set_flags=idea.flags,
        set_env=idea.env,
        remove_flags=idea.without_flags,
        remove_env=idea.without_env,
        install=idea.install or None,
    )


def with_installs(ideas: tuple[OwnIdea, ...], installs: tuple[EngineInstall, ...]) -> tuple[OwnIdea, ...]:
    """The ideas, and behind them each listed install that none of them names.

    Raises InputError for an idea that names an install which is not listed.
    """
    known = {install.name for install in installs}
    named = {idea.install for idea in ideas}
    wrong = next((name for name in named if name and name not in known), None)
    if wrong is not None:
        listed = ", ".join(sorted(known)) or "none"
        raise InputError(f"an idea names the engine install {wrong!r}: [[engine.install]] lists {listed}")
    return (*ideas, *(_switch_to(install) for install in installs if install.name not in named))


def _switch_to(install: EngineInstall) -> OwnIdea:
    build = f" ({install.version})" if install.version else ""
    return OwnIdea(
        statement=f"The engine install {install.name}{build} is faster than the one so far",
        reason="another build of the engine, its libraries or its environment: listed in the settings",
        install=install.name,
    )
