"""One turn's question: the view with everything that is derived from it once."""

from moeagent.agent.proposers.book import Book, LimitName
from moeagent.agent.proposers.expression import Function, UnknownFactError, Value, evaluate
from moeagent.agent.proposers.facts import facts_of, functions_of
from moeagent.agent.proposers.history import Past
from moeagent.agent.proposers.limits import Limit
from moeagent.agent.proposers.spelling import Spelling
from moeagent.agent.proposers.view import CampaignView
from moeagent.memory.records import ConfigChange, FlagValue, Knob, ServerConfig
from moeagent.tools.engines.denied import denied_env, denied_flag

UNKNOWN_FACT_DOUBT = 0.5
"""Chance factor of a move whose precondition nobody can check."""
NO_EVIDENCE = 0.6
"""Part of a move's promise that is kept before anything was measured."""
CONTRADICTED = 0.85
"""Belief in a limit after a lever of it was pulled in vain."""
NO_SLACK = 0.02
COUNTED: tuple[LimitName, ...] = ("batch-cap", "kv-capacity")
"""Limits that are counted, not estimated: what lifts one that does not bind brings nothing."""
SLACK = 0.15
"""Part of a move's promise that is kept when another limit than its own binds: limits are estimates."""


class Question:
    """The view with everything that is derived from it once per turn."""

    def __init__(
        self,
        view: CampaignView,
        book: Book,
        limits: tuple[Limit, ...],
        spelling: Spelling,
        base: ServerConfig | None = None,
    ) -> None:
        self.view, self.book, self.limits, self.spelling = view, book, limits, spelling
        self.base = base or view.incumbent
        """The configuration that changes apply to."""
        self.past = Past(view, spelling)
        self.facts: dict[str, Value | None] = facts_of(view)
        self.functions: dict[str, Function] = functions_of(view, self.base, spelling)

    def value(self, raw: FlagValue, **extra: Value) -> FlagValue:
        """A value of the data: as it is, or evaluated when it starts with =. Raises UnknownFactError."""
        if isinstance(raw, str) and raw.startswith("="):
            return evaluate(raw[1:], {**self.facts, **extra}, self.functions)
        return raw

    def number(self, expression: str) -> float | None:
        """A bound of the data, None when it is not known."""
        try:
            value = evaluate(expression, self.facts, self.functions)
        except UnknownFactError:
            return None
        return float(value) if isinstance(value, int | float) else None

    def number_in_force(self, flag: str) -> int | float | None:
        """The flag's positive number in force, None when it has none or nobody knows it."""
        try:
            value = self.functions["flag"](flag)
        except UnknownFactError:
            return None
        if isinstance(value, bool | str) or value <= 0:
            return None
        return value

    def holds(self, condition: str) -> float:
        """1 when the condition holds, 0 when not, between them when nobody can tell."""
        try:
            return 1.0 if evaluate(condition, self.facts, self.functions) else 0.0
        except UnknownFactError:
            return UNKNOWN_FACT_DOUBT

    def relevance(self, limits: tuple[LimitName, ...]) -> float:
        """How much of its promise a move keeps, by what binds now."""
        if not limits or not self.limits:
            return NO_EVIDENCE
        strengths = (x.strength * self._trust(x.name) for x in self.limits if x.name in limits)
        slack = NO_SLACK if all(name in COUNTED for name in limits) else SLACK
        return min(1.0, slack + 2 * max(strengths, default=0.0))

    def _trust(self, limit: LimitName) -> float:
        """How far a limit is believed in: less with every lever of it that was pulled in vain."""
        pulled = {move.id for move in self.book.move if limit in move.limits}
        vain = 0
        for trial in self.past.trials:
            if pulled & set(trial.hypothesis.move.split("+")):
                vain = 0 if trial.improved else vain + 1
        return CONTRADICTED**vain

    def settle(self, change: ConfigChange) -> ConfigChange | None:
        """The change in the base's spelling, or None when engine, book or user do not allow it."""
        change = self.spelling.respell(change, self.base)
        change = self.base.diff(self.base.apply(change))
        if (
            change.is_empty()
            or self._in_force(change)
            or self.view.space.objection(change)
            or self.avoided(change)
        ):
            return None
        return change if all(self._accepted(f, v) for f, v in change.set_flags.items()) else None

    def _in_force(self, change: ConfigChange) -> bool:
        """Whether the engine said that it runs with these values already."""
        if change.remove_flags or change.remove_env or change.set_env or not change.set_flags:
            return False
        return all(self.number_in_force(flag) == value for flag, value in change.set_flags.items())

    def avoided(self, change: ConfigChange) -> str | None:
        """Why the deny list or the book forbids the change, or None."""
        engine = self.base.engine
        denied = [(n, denied_flag(engine, n)) for n in change.set_flags]
        denied += [(n, denied_env(n)) for n in change.set_env]
        for name, reason in denied:
            if reason is not None:
                return f"{name} is refused: {reason}"
        return self._advised_against(change)

    def _advised_against(self, change: ConfigChange) -> str | None:
        for rule in self.book.avoid:
            name = self.spelling.find(rule.flag, change.set_flags)
            if name is None or self.holds(rule.when) == 0:
                continue
            if rule.values is None or change.set_flags[name] in rule.values:
                return f"{name}: {rule.reason} ({rule.source})"
        return None

    def _accepted(self, flag: str, value: FlagValue) -> bool:
        if not self.view.engine.knobs:
            return True
        knob = self.spelling.declared(flag)
        choices = knob.choices if knob else None
        return self.declares(flag) and (choices is None or isinstance(value, bool) or str(value) in choices)

    def declares(self, flag: str) -> bool:
        """Whether the engine, or else the book, has the flag, also in its --no- form."""
        if not self.view.engine.knobs:
            return any(name in self.book.flags() for name in self.spelling.all(flag))
        return (self.spelling.declared(flag) or self._negated(flag)) is not None

    def _negated(self, flag: str) -> Knob | None:
        positive = flag.replace("--no-", "--", 1) if flag.startswith("--no-") else None
        knob = self.spelling.declared(positive) if positive else None
        return knob if knob is not None and knob.kind == "bool" else None
