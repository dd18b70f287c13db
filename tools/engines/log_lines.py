"""Numbers and settings in an engine's log, by the rules of data/log_lines.toml. Pure functions of text."""

import re
import tomllib
from collections import defaultdict
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import Field

from moeagent.memory.records import Record
from moeagent.tools.engines.key_values import literal

_RANK = re.compile(r"\b(?:TP|PP|DP|EP|rank)\s?\d+|Worker\w*|EngineCore\w*")


class MemoryRule(Record):
    """One printed number."""

    engine: str
    metric: str
    pattern: str
    """The groups of one line are added up."""
    scale: float = 1.0
    per_rank: Literal["first", "last", "sum"]
    over_ranks: Literal["min", "max"]


class AdjustedRule(Record):
    """One line by which an engine says what it chose or changed."""

    engine: str
    pattern: str
    set: dict[str, bool | int | str] = Field(default_factory=dict)
    drop: tuple[str, ...] = ()
    """Flags that are as if they had not been given."""
    why: str


class CompilingRule(Record):
    """One line by which an engine says that it compiles a kernel while it serves."""

    engine: str
    pattern: str
    """POSIX extended, for a search on the host."""
    why: str


class LogRules(Record):
    """All rules."""

    source: str
    memory: tuple[MemoryRule, ...]
    adjusted: tuple[AdjustedRule, ...]
    compiling: tuple[CompilingRule, ...]


@cache
def log_rules() -> LogRules:
    """The rules as data."""
    path = files("moeagent.tools.engines") / "data" / "log_lines.toml"
    return LogRules.model_validate(tomllib.loads(path.read_text()))


def memory_numbers(engine: str, log_text: str) -> dict[str, float]:
    """Memory as printed, per GPU: the rank that decides (largest use, least free)."""
    found: dict[str, float] = {}
    for rule in log_rules().memory:
        if rule.engine == engine and rule.metric not in found:
            value = _combined(rule, log_text)
            if value is not None:
                found[rule.metric] = round(value, 6)
    return found


def adjusted_settings(engine: str, log_text: str) -> dict[str, Any]:
    """Settings that the engine says it chose or changed, by flag; of two lines the later one wins."""
    found: dict[str, Any] = {}
    for rule in log_rules().adjusted:
        if rule.engine != engine:
            continue
        for match in re.finditer(rule.pattern, log_text):
            found |= {flag: _value(value, match) for flag, value in rule.set.items()}
            found |= dict.fromkeys(rule.drop)
    return found


def compiling_patterns(engine: str) -> tuple[str, ...]:
    """POSIX extended patterns of the lines by which the engine says that it compiles while it serves."""
    return tuple(rule.pattern for rule in log_rules().compiling if rule.engine == engine)


def _combined(rule: MemoryRule, log_text: str) -> float | None:
    per_rank: dict[str, list[float]] = defaultdict(list)
    for match in re.finditer(rule.pattern, log_text):
        number = sum(float(group.replace(",", "")) for group in match.groups())
        per_rank[_rank(log_text, match.start())].append(number * rule.scale)
    if not per_rank:
        return None
    take = {"first": lambda v: v[0], "last": lambda v: v[-1], "sum": sum}[rule.per_rank]
    return float((min if rule.over_ranks == "min" else max)(take(values) for values in per_rank.values()))


def _rank(text: str, position: int) -> str:
    """The rank tags between the beginning of the line and the position."""
    begin = max(text.rfind("\n", 0, position), text.rfind("\r", 0, position)) + 1
    return " ".join(_RANK.findall(text, begin, position))


def _value(value: bool | int | str, match: re.Match[str]) -> Any:
    if isinstance(value, str) and value.startswith("$"):
        return literal(match.group(int(value[1:])))
    return value
