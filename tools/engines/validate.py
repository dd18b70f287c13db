"""Checks a configuration against what the installed engine accepts, before anything is launched."""

import json
import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Literal

from rapidfuzz import process

from moeagent.memory.records import EngineFacts, FlagValue, HostFacts, Knob, Record, ServerConfig
from moeagent.tools.engines.catalogue import EnvEntry, catalogue, env_catalogue
from moeagent.tools.engines.couplings import Situation, broken_rules, explain
from moeagent.tools.engines.denied import denied_env, denied_flag

ProblemKind = Literal[
    "denied", "unknown", "renamed", "ambiguous", "abbreviated", "deprecated", "unread", "value", "choice",
    "env", "coupling",
]  # fmt: skip

_INTEGER = re.compile(r"-?\d+(\.\d+)?[kKmMgG]?")


class Problem(Record):
    """One thing that is wrong with a configuration."""

    kind: ProblemKind
    knob: str
    message: str
    """What is wrong and what to do."""
    fatal: bool
    """The engine would not start, or moeagent does not pass it on."""
    suggestion: str | None = None
    """The name that was probably meant, or that took its place."""


def validate_config(
    config: ServerConfig,
    facts: EngineFacts,
    *,
    host: HostFacts | None = None,
    model: Mapping[str, Any] = MappingProxyType({}),
    allow: tuple[str, ...] = (),
    trusted_env: Collection[str] = (),
) -> tuple[Problem, ...]:
    """Everything that is wrong, fatal problems first; empty when nothing is.

    `allow`: flags of the deny list that the install's owner permits. `trusted_env`: variables that the user
    set himself, which need not be in the catalogue. `host` and `model` (facts by name, such as
    model.attention) add the rules that depend on them.
    """
    problems = [p for flag, value in config.flags.items() for p in _flag(config, facts, flag, value, allow)]
    problems += [
        p for name, value in config.env.items() for p in _env(config, name, value, allow, trusted_env)
    ]
    situation = Situation(config, facts, host, model)
    given = situation.given
    for rule in broken_rules(situation):
        problems.append(
            Problem(
                kind="coupling",
                knob=next((name for name in rule.subjects() if name in given), rule.subjects()[0]),
                message=f"{explain(rule, given)} ({rule.outcome}; {rule.source})",
                fatal=rule.outcome == "refused",
            )
        )
    return tuple(sorted(problems, key=lambda problem: not problem.fatal))


def canonical(config: ServerConfig, facts: EngineFacts) -> ServerConfig:
    """The configuration with aliases and unique abbreviations (`--tp 8`) under the flags' full names.

    A user may write what the engine would take; identities and differences need one spelling.
    """
    flags: dict[str, FlagValue] = {}
    for flag, value in config.flags.items():
        knob = facts.knob(flag)
        longer = completions(facts, flag) if knob is None else []
        knob = facts.knob(longer[0]) if len(longer) == 1 else knob
        flags[knob.name if knob is not None else flag] = value
    return config.model_copy(update={"flags": flags})


def completions(facts: EngineFacts, flag: str) -> list[str]:
    """The flags that argparse would complete this one to; llama.cpp completes nothing."""
    if facts.engine == "llamacpp" or not flag.startswith("--"):
        return []
    return sorted(n for knob in facts.knobs for n in (knob.name, *knob.aliases) if n.startswith(flag))


def _flag(
    config: ServerConfig, facts: EngineFacts, flag: str, value: FlagValue, allow: tuple[str, ...]
) -> list[Problem]:
    reason = denied_flag(config.engine, flag, allow=allow)
    if reason:
        return [Problem(kind="denied", knob=flag, message=f"{flag} is never passed on: {reason}", fatal=True)]
    knob = _find(facts, flag)
    if knob is None:
        return [_unknown(facts, flag)]
    problems = _status(facts, flag, knob)
    complaint = _bad_value(config.engine, knob, value, negated=flag.startswith("--no-") and flag != knob.name)
    if complaint:
        kind: ProblemKind = "choice" if knob.choices and "one of" in complaint else "value"
        problems.append(Problem(kind=kind, knob=flag, message=f"{flag} {complaint}", fatal=True))
    return problems


def _find(facts: EngineFacts, flag: str) -> Knob | None:
    """The knob of this spelling: vLLM also takes underscores, --no-X, and dotted keys of JSON values."""
    found = facts.knob(flag)
    if found is None and facts.engine == "vllm":
        base = flag.split(".", 1)[0].replace("_", "-")
        found = facts.knob(base)
        if found is None and base.startswith("--no-"):
            positive = facts.knob("--" + base[5:])
            found = positive if positive is not None and positive.kind == "bool" else None
    return found


def _unknown(facts: EngineFacts, flag: str) -> Problem:
    named = f"{facts.engine} {facts.version or ''}".strip()
    entry = catalogue(facts.engine).entry(flag)
    instead = entry.replaced_by if entry is not None else None
    longer = completions(facts, flag)
    if len(longer) > 1:
        message = (
            f"{flag} could mean {' or '.join(longer[:4])} in {named}, which ends the start: write one in full"
        )
        return Problem(kind="ambiguous", knob=flag, message=message, fatal=True, suggestion=instead)
    if longer:
        message = f"{flag} is an abbreviation of {longer[0]}: write the full name, which stays the same flag"
        return Problem(kind="abbreviated", knob=flag, message=message, fatal=True, suggestion=longer[0])
    if instead:
        message = f"{named} has no {flag} (any more): use {instead}"
        return Problem(kind="renamed", knob=flag, message=message, fatal=True, suggestion=instead)
    names = [name for knob in facts.knobs for name in (knob.name, *knob.aliases)]
    near = process.extractOne(flag, names, score_cutoff=70) if len(flag) > 3 else None
    hint = f": did you mean {near[0]}?" if near else ""
    elsewhere = f"; {', '.join(entry.versions)} has it" if entry is not None and entry.versions else ""
    message = f"{named} has no flag {flag}{elsewhere}{hint}"
    return Problem(
        kind="unknown", knob=flag, message=message, fatal=True, suggestion=near[0] if near else None
    )


def _status(facts: EngineFacts, flag: str, knob: Knob) -> list[Problem]:
    entry = catalogue(facts.engine).entry(flag)
    instead = entry.replaced_by if entry is not None else None
    if knob.status == "unread":
        message = f"{flag} is accepted and read by nothing in this version: it cannot have an effect"
        return [Problem(kind="unread", knob=flag, message=message, fatal=False, suggestion=instead)]
    if knob.status == "deprecated":
        message = f"{flag} is deprecated" + (f": use {instead}" if instead else "")
        return [Problem(kind="deprecated", knob=flag, message=message, fatal=False, suggestion=instead)]
    return []


def _bad_value(engine: str, knob: Knob, value: FlagValue, *, negated: bool) -> str | None:
    """What is wrong with the value, or None."""
    if value is False:
        return "= false means nothing: leave the flag out"
    if knob.kind == "bool":
        switch = not negated and str(value).lower() in ("true", "false")
        return None if value is True or switch else "takes no value"
    if value is True:
        return None if knob.choices is None and knob.kind == "json" else "needs a value"
    entry = catalogue(engine).entry(knob.name)
    parts = str(value).split() if entry is not None and entry.several else [str(value)]
    return next((c for c in (_bad_word(knob, part) for part in parts) if c), None)


def _bad_word(knob: Knob, text: str) -> str | None:
    if knob.choices is not None and text not in knob.choices:
        near = process.extractOne(text, knob.choices, score_cutoff=60)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"is {text!r}, which is not one of {', '.join(knob.choices)}{hint}"
    if knob.kind == "int" and not _INTEGER.fullmatch(text) and text not in ("auto", "all"):
        return f"is {text!r}, which is not a whole number"
    if knob.kind == "float":
        try:
            float(text)
        except ValueError:
            return f"is {text!r}, which is not a number"
    if knob.kind == "json" and text.lstrip()[:1] in ("{", "["):
        try:
            json.loads(text)
        except ValueError as error:
            return f"is not valid JSON: {error}"
    return None


def _env(
    config: ServerConfig, name: str, value: str, allow: tuple[str, ...], trusted: Collection[str]
) -> list[Problem]:
    reason = denied_env(name, allow=allow)
    if reason:
        return [Problem(kind="denied", knob=name, message=f"{name} is never passed on: {reason}", fatal=True)]
    if name in trusted:
        return []
    known = env_catalogue(config.engine)
    entry = next((entry for entry in known if entry.name == name), None)
    if entry is None:
        near = process.extractOne(name, [e.name for e in known], score_cutoff=80)
        hint = f": did you mean {near[0]}?" if near else "; the user may set it in the baseline"
        message = f"{name} is not in the catalogue of {config.engine}'s variables{hint}"
        return [
            Problem(kind="env", knob=name, message=message, fatal=True, suggestion=near[0] if near else None)
        ]
    complaint = _bad_env_value(entry, value)
    return [Problem(kind="env", knob=name, message=f"{name} {complaint}", fatal=True)] if complaint else []


def _bad_env_value(entry: EnvEntry, value: str) -> str | None:
    if entry.kind == "bool":
        known = value.lower() in ("0", "1", "true", "false", "yes", "no", "y", "n")
        return None if known else f"is {value!r}: write 0 or 1"
    return _bad_word(entry.knob(), value)
