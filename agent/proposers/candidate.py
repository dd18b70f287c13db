"""One thing that could be tried next, before it is ranked."""

from collections.abc import Mapping
from typing import NamedTuple

from moeagent.agent.proposers.beliefs import Gain
from moeagent.agent.proposers.book import LimitName
from moeagent.memory.records import ConfigChange, FlagValue, Knob


class Candidate(NamedTuple):
    """A change of the incumbent with what is expected of it."""

    move: str
    """Id: of a move, or step:FLAG:up, combine, undo:ID, known:RUN, declared:FLAG."""
    statement: str
    why: str
    source: str
    category: str
    change: ConfigChange
    gains: Mapping[int, Gain]
    """By concurrency of the ladder."""
    limits: tuple[LimitName, ...] = ()
    """Limits that it moves."""
    cost: float = 1.0
    risk: float = 0.02
    risk_why: str = ""
    """The predictor's reason, where its word decides the risk."""
    doubt: float = 1.0
    """Chance factor in (0, 1]."""
    prior: str = ""
    from_run: str = ""
    """Id of the earlier run in which it paid."""
    unsure: float = 0.0
    """Least standard deviation of the predictor's word."""
    guessed: bool = False
    """Its gains are ranks without a measurement behind them: a predictor that contradicts is believed."""
    untested: bool = False
    """It takes back what is only believed: beliefs that no launch tested apart are wrong now and then."""
    together: bool = False
    """What its parts did apart says nothing about it."""


def whole(knob: Knob | None, value: FlagValue) -> FlagValue:
    """Whole numbers as int: the data computes with floats."""
    is_whole = isinstance(value, float) and value == int(value) and (knob is None or knob.kind != "float")
    return int(value) if is_whole else value
