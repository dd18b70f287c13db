"""The approval policy: rules over what is about to be launched. The strictest rule that matches wins.

Order does not matter: a rule can never be switched off by one that stands before it. Where no rule matches,
the policy's default holds, else the mode. The deny list of the engines is no part of this and wins over it.
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Literal, Self

from pydantic import Field, NonNegativeFloat, model_validator

from moeagent.memory.records import Record

Mode = Literal["never", "risky", "always"]
Action = Literal["allow", "ask", "deny"]
Source = Literal["playbook", "model", "user", "search"]
STRICTNESS: dict[Action, int] = {"allow": 0, "ask": 1, "deny": 2}
REMOVED = "(removed)"
"""What stands for the value of a flag that the change leaves out."""


class Rule(Record):
    """One rule; all the conditions that it states have to hold."""

    action: Action
    reason: str = ""
    """For whoever reads the log."""
    command: tuple[str, ...] = ()
    """Globs, one of which matches the whole command as it would run."""
    flags: dict[str, str] = Field(default_factory=dict)
    """Glob on the name to glob on the value, of what the idea changes; each pair matches some flag."""
    env: dict[str, str] = Field(default_factory=dict)
    """The same for environment variables."""
    source: tuple[Source, ...] = ()
    """Whose idea it is."""
    risk_over: float | None = Field(default=None, ge=0, le=1)
    """Predicted chance that the server dies."""
    gpu_hours_over: NonNegativeFloat | None = None
    """Expected GPU-hours of the launch."""
    cost_over: NonNegativeFloat | None = None
    """Expected price of the launch, in the currency of host.price_per_hour."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_dump(exclude={"action", "reason"}, exclude_defaults=True):
            raise ValueError("the rule has no condition: set the policy's `default` for all that is left")
        return self

    def words(self) -> str:
        """What the rule is called in a message."""
        stated = self.model_dump(exclude={"action", "reason"}, exclude_defaults=True)
        told = "; ".join(f"{name} {_plain(value)}" for name, value in stated.items())
        return f"{self.action} {told}"


class ApprovalPolicy(Record):
    """Rules, and what holds where none matches."""

    default: Action | None = None
    """Without it the mode decides: never allows, always asks, risky asks for what is risky."""
    risky_from: float = Field(default=0.25, ge=0, le=1)
    """Predicted chance that the server dies from which a launch counts as risky."""
    rule: tuple[Rule, ...] = ()


class Subject(Record):
    """A configuration that is about to be launched, as far as a rule can see it."""

    command: str
    flags: dict[str, str] = Field(default_factory=dict)
    """Flags that the idea sets, or removes, against the configuration that it starts from."""
    env: dict[str, str] = Field(default_factory=dict)
    source: Source
    risk: float = 0.0
    gpu_hours: float = 0.0
    cost: float | None = None
    """None where no price is known."""


class Ruling(Record):
    """What the policy says, and which rule or mode says it."""

    action: Action
    by: str
    reason: str = ""


def rule_on(policy: ApprovalPolicy, mode: Mode, subject: Subject) -> Ruling:
    """What holds for this launch. With `never` nobody is asked: what a rule wants asked is left out."""
    found = _strictest(policy, subject) or _unmatched(policy, mode, subject)
    if found.action == "ask" and mode == "never":
        reason = "it would have to be asked, and nobody is asked with --approve never"
        return Ruling(action="deny", by=found.by, reason=reason)
    return found


def silent(policy: ApprovalPolicy, mode: Mode) -> bool:
    """True where everything is launched without a word: no rule, no default, nobody is asked."""
    return mode == "never" and not policy.rule and policy.default in (None, "allow")


def _strictest(policy: ApprovalPolicy, subject: Subject) -> Ruling | None:
    matching = [rule for rule in policy.rule if matches(rule, subject)]
    if not matching:
        return None
    rule = max(matching, key=lambda each: STRICTNESS[each.action])
    return Ruling(action=rule.action, by=f"rule ({rule.words()})", reason=rule.reason)


def _unmatched(policy: ApprovalPolicy, mode: Mode, subject: Subject) -> Ruling:
    if policy.default is not None:
        return Ruling(action=policy.default, by="the policy's default", reason="no rule matches")
    if mode == "always":
        return Ruling(action="ask", by="--approve always")
    if mode == "risky" and subject.risk >= policy.risky_from:
        reason = f"a risk of {subject.risk:.0%}, from {policy.risky_from:.0%} on it is asked"
        return Ruling(action="ask", by="--approve risky", reason=reason)
    return Ruling(action="allow", by=f"--approve {mode}")


def matches(rule: Rule, subject: Subject) -> bool:
    """Whether every condition that the rule states holds."""
    return all(_conditions(rule, subject))


def _conditions(rule: Rule, subject: Subject) -> Iterator[bool]:
    if rule.command:
        yield any(fnmatchcase(subject.command, glob) for glob in rule.command)
    yield _some_of_each(rule.flags, subject.flags)
    yield _some_of_each(rule.env, subject.env)
    if rule.source:
        yield subject.source in rule.source
    yield _over(rule.risk_over, subject.risk, rule.action)
    yield _over(rule.gpu_hours_over, subject.gpu_hours, rule.action)
    yield _over(rule.cost_over, subject.cost, rule.action)


def _some_of_each(wanted: Mapping[str, str], given: Mapping[str, str]) -> bool:
    return all(
        any(fnmatchcase(name, glob) and fnmatchcase(value, of) for name, value in given.items())
        for glob, of in wanted.items()
    )


def _over(bound: float | None, figure: float | None, action: Action) -> bool:
    """Whether the figure lies above the bound; one that is not known counts against the launch."""
    if bound is None:
        return True
    return action != "allow" if figure is None else figure > bound


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={of}" for name, of in value.items())
    return ", ".join(map(str, value)) if isinstance(value, tuple) else f"{value}"
