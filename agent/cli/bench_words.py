"""What the words of `moeagent bench` mean. Each raises InputError with what to write instead."""

import os
import re
from typing import Literal, cast, get_args

from pydantic import SecretStr

from moeagent.agent.cli.parse import ladder
from moeagent.memory.errors import InputError
from moeagent.tools.load import Slo
from moeagent.tools.load.probe import check_url as url
from moeagent.tools.load.spec import ApiName

__all__ = ["api", "arrival", "dataset", "id_range", "key", "ladder", "slo", "url"]

DatasetName = Literal["random", "sharegpt", "prefix", "file"]
DATASETS = get_args(DatasetName)
ARRIVALS = ("poisson", "constant", "burst", "trace")
BOUND = re.compile(r"(ttft|tpot|e2e):([0-9]*\.?[0-9]+)(ms|s)")


def one_of(option: str, word: str, choices: tuple[str, ...]) -> str:
    """The word, when it is among the choices."""
    if word not in choices:
        raise InputError(f"{option} {word}: choose one of {', '.join(choices)}")
    return word


def api(word: str) -> ApiName:
    """An API's name; `auto` stands for the commonest until the server has been asked."""
    chosen = one_of("--api", word, ("auto", *get_args(ApiName)))
    return "openai-completions" if chosen == "auto" else cast(ApiName, chosen)


def dataset(word: str) -> DatasetName:
    """A data set's kind."""
    return cast(DatasetName, one_of("--dataset", word, DATASETS))


def arrival(word: str) -> str:
    """An arrival process."""
    return one_of("--arrival", word, ARRIVALS)


def key(variable: str) -> SecretStr | None:
    """The bearer token in that environment variable."""
    value = os.environ.get(variable)
    return SecretStr(value) if value else None


def slo(text: str | None) -> Slo | None:
    """`ttft:200ms,tpot:50ms` as bounds in milliseconds."""
    if text is None:
        return None
    bounds: dict[str, float] = {}
    for part in text.split(","):
        match = BOUND.fullmatch(part.strip())
        if match is None:
            raise InputError(
                f"--goodput {part!r}: write ttft, tpot or e2e with a unit, such as ttft:200ms,tpot:50ms"
            )
        name, value, unit = match.groups()
        bounds[f"{name}_ms"] = float(value) * (1000 if unit == "s" else 1)
    return Slo.model_validate(bounds)


def id_range(text: str | None) -> tuple[int, int] | None:
    """`1000-5000` as a half-open range of token ids."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)-(\d+)", text)
    if match is None or int(match[1]) >= int(match[2]):
        raise InputError(f"--token-ids {text}: write LOW-HIGH, such as 1000-5000")
    return int(match[1]), int(match[2])
