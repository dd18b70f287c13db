"""Wrappers, through which a server is started somewhere else than below moeagent: containers, batch systems.

A wrapper declares as data how to tag what it starts, and how to find and stop it by that tag; what lacks one
of these is refused. The known ones are in wrappers.toml.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath

from pydantic import Field

from moeagent.memory.errors import InputError
from moeagent.memory.records.base import Record
from moeagent.tools.hosts.command import Command, Part, plain

OWN_VARIABLES = ("MOEAGENT_FOLDER", "MOEAGENT_TAG", "SPT_NOENV")
"""What `processes.start_detached` sets, and what must reach the server inside too."""
PROBE_VARIABLES = ("COLUMNS", "LC_ALL")
"""What the survey's commands set."""


class Declared(Record):
    """What a wrapper has to say of itself; {tag}, {id} and others are filled in, see wrappers.toml."""

    tag: tuple[str, ...] = ()
    """Options that mark what is started; none where its environment is enough (`env`, and `find` inside)."""
    env: tuple[str, ...] = ()
    """Options that hand on one variable of the client; none where the whole environment travels."""
    find: tuple[str, ...] = ()
    """Prints `id tag [state]` for each that carries the tag, running or not."""
    stop: tuple[str, ...] = ()
    """Asks politely."""
    kill: tuple[str, ...] = ()
    """Ends it for good, and removes what a polite stop leaves."""
    logs: tuple[str, ...] = ()
    """Prints the whole output, for when the client died before the server."""


class KnownWrapper(Declared):
    """One entry of wrappers.toml."""

    name: str
    program: str
    verb: str = ""
    source: str
    always: tuple[str, ...] = ()
    """Options that are set where they are missing."""
    unless: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Option to the options that stand in its place."""
    refused: dict[str, str] = Field(default_factory=dict)
    """Option to the reason why it cannot be used."""


class WrapperCatalogue(Record):
    """All of wrappers.toml."""

    wrapper: tuple[KnownWrapper, ...]
    outlives: dict[str, str]
    """Program to the reason why it may not be used without a wrapper."""


class WrapperSpec(Declared):
    """[engine.wrapper]: how the engine's command is started elsewhere, as the user says it."""

    command: tuple[str, ...] = ()
    """Words up to where the engine's command begins, such as docker run --gpus all -v /models:/models IMG."""
    kind: str = ""
    """docker, docker-exec, podman, podman-exec or slurm; empty to tell it from the command. For any other
    wrapper say tag or env, find, stop and kill here."""


class Wrapper(Record):
    """A wrapper that is complete: what to put before the engine's command, and how to find it again."""

    kind: str
    client: tuple[str, ...]
    verb: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()
    declared: Declared

    @property
    def prefix(self) -> tuple[str, ...]:
        """The wrapper as the user wrote it, with what is always set."""
        return (*self.client, *self.verb, *self.rest)

    def with_variables(self, names: Mapping[str, object] | tuple[str, ...]) -> tuple[str, ...]:
        """The prefix for read-only commands, which hand on these variables."""
        return (*self.client, *self.verb, *self._handed_on(tuple(names)), *self.rest)

    def tagged(self, command: Command, tag: str) -> Command:
        """The command, which begins with the prefix, with tag and variables in its place."""
        at = len(self.client) + len(self.verb)
        if tuple(map(plain, command.argv[:at])) != (*self.client, *self.verb):
            raise InputError(f"{command} does not begin with its wrapper {' '.join(self.prefix)}")
        names = tuple(sorted({*command.env, *OWN_VARIABLES}))
        options = (*self.filled(self.declared.tag, tag=tag), *self._handed_on(names))
        argv: tuple[Part, ...] = (*command.argv[:at], *options, *command.argv[at:])
        return Command(argv, command.env, command.cwd, title=command.title)

    def filled(self, words: tuple[str, ...], **values: str) -> tuple[str, ...]:
        """The words with what is in braces filled in; {client} and {prefix} stand for several words."""
        several = {"{client}": self.client, "{prefix}": self.prefix}
        filled: list[str] = []
        for word in words:
            filled += several.get(word) or (_fill(word, values),)
        return tuple(filled)

    def _handed_on(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(word for name in names for word in self.filled(self.declared.env, name=name))


@cache
def wrapper_catalogue() -> WrapperCatalogue:
    """The known wrappers as data."""
    text = (files("moeagent.tools.hosts") / "wrappers.toml").read_text("utf-8")
    return WrapperCatalogue.model_validate(tomllib.loads(text))


def resolve(spec: WrapperSpec) -> Wrapper:
    """The wrapper of the settings. Raises InputError for one that cannot be found or stopped again."""
    if not spec.command:
        raise InputError(
            "the wrapper has no command: write its words up to where the engine's command begins"
        )
    known = _known(spec)
    if known is None:
        return Wrapper(kind=spec.kind or program_of(spec.command), client=spec.command, declared=_own(spec))
    at = next(i for i, word in enumerate(spec.command) if program_of((word,)) == known.program)
    split = spec.command.index(known.verb, at) if known.verb else at + 1
    verb = spec.command[split : split + 1] if known.verb else ()
    client, rest = spec.command[:split], spec.command[split + len(verb) :]
    _refuse(known, rest)
    added = (*(o for o in known.always if o not in rest), *_missing(known, rest))
    declared = Declared.model_validate(
        {name: getattr(spec, name) or getattr(known, name) for name in Declared.model_fields}
    )
    return Wrapper(kind=known.name, client=client, verb=verb, rest=(*added, *rest), declared=declared)


def refuse_unwrapped(command: tuple[str, ...]) -> None:
    """Raises InputError for a launch command whose server would outlive it, when no wrapper says how."""
    outlives = wrapper_catalogue().outlives
    for word in command:
        reason = outlives.get(program_of((word,)))
        if reason:
            raise InputError(
                f"the engine's command begins with {program_of((word,))}, and {reason}: nobody could find or "
                "stop the server again. Say it as [engine.wrapper] command = [...], and as engine.command "
                "what runs inside"
            )


def program_of(command: tuple[str, ...]) -> str:
    """The program's name without its folder."""
    return PurePosixPath(command[0]).name


def _known(spec: WrapperSpec) -> KnownWrapper | None:
    known = wrapper_catalogue().wrapper
    if spec.kind:
        found = next((each for each in known if each.name == spec.kind), None)
        if found is not None and not _fits(found, spec.command):
            raise InputError(
                f"the wrapper {' '.join(spec.command)} is no {spec.kind}: it begins with "
                f"{found.program}{' ... ' + found.verb if found.verb else ''}"
            )
        return found
    return next((each for each in known if _fits(each, spec.command)), None)


def _fits(known: KnownWrapper, command: tuple[str, ...]) -> bool:
    programs = [program_of((word,)) for word in command]
    if known.program not in programs:
        return False
    return not known.verb or known.verb in command[programs.index(known.program) :]


def _own(spec: WrapperSpec) -> Declared:
    """The user's own declaration. Raises InputError for what it lacks."""
    lacking = [name for name in ("find", "stop", "kill") if not getattr(spec, name)]
    lacking += [] if spec.tag or spec.env else ["tag (or env)"]
    if lacking:
        known = ", ".join(each.name for each in wrapper_catalogue().wrapper)
        raise InputError(
            f"the wrapper {' '.join(spec.command)} does not say how its server is found and stopped again: "
            f"it lacks {', '.join(lacking)}. Known wrappers are {known}"
        )
    return Declared.model_validate({name: getattr(spec, name) for name in Declared.model_fields})


def _refuse(known: KnownWrapper, rest: tuple[str, ...]) -> None:
    for word in rest:
        reason = known.refused.get(word.partition("=")[0])
        if reason:
            raise InputError(f"the wrapper's {word} cannot be used: {reason}. Remove it")
    for wanted, others in known.unless.items():
        for other in others:
            given = [
                w for i, w in enumerate(rest) if w.startswith(f"{other}=") or rest[i - 1 : i] == (other,)
            ]
            value = wanted.partition("=")[2]
            if given and given[-1].removeprefix(f"{other}=") != value:
                raise InputError(
                    f"the wrapper's {other} has to be {value}: the server listens on 127.0.0.1 of the machine"
                )


def _missing(known: KnownWrapper, rest: tuple[str, ...]) -> tuple[str, ...]:
    """Options that are set because nothing stands in their place."""
    names = {word.partition("=")[0] for word in rest}
    return tuple(option for option, others in known.unless.items() if not names & set(others))


def _fill(word: str, values: Mapping[str, str]) -> str:
    """Only the known names are filled in: a template of the wrapper's own ({{.ID}}) stays as it is."""
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word
