"""Policies by the name that the command line gives them."""

from collections.abc import Callable
from difflib import get_close_matches

from moeagent.agent.settings import LlmSettings
from moeagent.agent.worlds.contest import Policy
from moeagent.agent.worlds.loop_policy import LoopPolicy
from moeagent.agent.worlds.optuna_search import OptunaSearch
from moeagent.agent.worlds.search import Coordinate, Grid
from moeagent.memory.errors import InputError

MODEL = "model:"
PREFLIGHT = "+preflight"
_SEARCHES: dict[str, Callable[[bool], Policy]] = {
    "random": lambda preflight: OptunaSearch("random", preflight),
    "grid": Grid,
    "coordinate": Coordinate,
    "tpe": lambda preflight: OptunaSearch("tpe", preflight),
    "gp": lambda preflight: OptunaSearch("gp", preflight),
}
NAMES = ("playbook", *(name + suffix for name in _SEARCHES for suffix in ("", PREFLIGHT)))


def policy_by_name(name: str) -> Policy:
    """`playbook`, `model:URL`, a search, or a search with `+preflight`. Raises InputError."""
    if name == "playbook":
        return LoopPolicy()
    if name.startswith(MODEL):
        return LoopPolicy(name, LlmSettings(base_url=name.removeprefix(MODEL)))
    if name in NAMES:
        return _SEARCHES[name.removesuffix(PREFLIGHT)](name.endswith(PREFLIGHT))
    near = get_close_matches(name, NAMES, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise InputError(f"there is no policy {name!r}{hint} There are {', '.join(NAMES)} and model:URL")
