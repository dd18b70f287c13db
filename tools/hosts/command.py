"""Commands as typed parts. One function quotes them, one masks what nobody may see."""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from moeagent.memory.errors import InputError

MASK = "***"

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAME = re.compile(
    r"(api[-_]?key|secret([-_](access[-_])?key)?|passw(or)?d|credentials"
    r"|(auth|access|api|bearer|hf)[-_]token)$|^[A-Z0-9_]+_TOKEN$",
    re.IGNORECASE,
)
_URL_PASSWORD = re.compile(r"(?<=://)([^/@\s:]*):([^/@\s]+)@")


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that reaches the process but never a message, a log or the tape."""

    value: str

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    def __str__(self) -> str:
        return MASK


Part = str | Secret


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments: no part of it is ever read by a shell.

    Raises InputError for what no process can receive: an empty argv, a NUL byte, text that is not UTF-8,
    a bad variable name, or a program name that starts with a dash.
    """

    argv: tuple[Part, ...]
    env: Mapping[str, Part] = field(default_factory=dict)
    """Added to the environment that the host gives."""
    cwd: str | None = None
    repeatable: bool = False
    """Running it twice does no harm, so a broken connection may run it again."""
    title: str = ""
    """What messages call it, where its text would say less."""

    def __post_init__(self) -> None:
        if not self.argv or not plain(self.argv[0]) or plain(self.argv[0]).startswith("-"):
            raise InputError("a command starts with the name of a program: give a path or a name on the PATH")
        for name in self.env:
            if not _ENV_NAME.fullmatch(name):
                raise InputError(f"{name!r} is not an environment variable name: use letters, digits and _")
        for part in (*self.argv, *self.env.values(), self.cwd or ""):
            _check_passable(part)

    def __str__(self) -> str:
        return masked(self)


def plain(part: Part) -> str:
    """The text that the process receives."""
    return part.value if isinstance(part, Secret) else part


def encode(text: str) -> bytes:
    """Text as the bytes that a process receives; bytes that were not UTF-8 come back unchanged."""
    return text.encode("utf-8", "surrogateescape")


def quote(command: Command) -> str:
    """The command for a POSIX shell, in which each part arrives unchanged whatever it holds.

    It starts with `exec`, so that a program named like a shell word (`if`, `eval`) stays a program.
    """
    return _render(command, lambda name, part: shlex.quote(plain(part)), start="exec ")


def masked(command: Command) -> str:
    """The command as people may see it: as `quote` gives it, with secrets replaced by ***.

    Masked are Secret parts, values whose variable or flag is named like a secret, and passwords in URLs.
    """
    return _render(command, _show)


def without_secrets(words: Sequence[str]) -> list[str]:
    """The words of a running process with what `masked` would hide replaced by ***."""
    owners = ("", *(word if word.startswith("-") else "" for word in words))
    return [_hidden(owner, word) for owner, word in zip(owners, words, strict=False)]


def called(command: Command) -> str:
    """The command in a message: its title, or the beginning of its masked text."""
    return mask(command.title, secrets_of(command)) or masked(command)[:200]


def mask(text: str, secrets: Iterable[Part] = ()) -> str:
    """Any text with these secrets and the passwords in its URLs replaced by ***."""
    for value in sorted({plain(s) for s in secrets} - {""}, key=len, reverse=True):
        text = text.replace(value, MASK)
    return _URL_PASSWORD.sub(rf"\1:{MASK}@", text)


def is_secret_name(name: str) -> bool:
    """Whether a variable or flag of this name holds a secret."""
    return _SECRET_NAME.search(name) is not None


def has_password(text: str) -> bool:
    """Whether a URL in the text holds a password."""
    return _URL_PASSWORD.search(text) is not None


def secrets_of(command: Command) -> tuple[Secret, ...]:
    """The Secret parts of a command, for `mask`."""
    return tuple(p for p in (*command.argv, *command.env.values()) if isinstance(p, Secret))


def _check_passable(part: Part) -> None:
    text = plain(part)
    shown = MASK if isinstance(part, Secret) else repr(text[:80])
    if "\0" in text:
        raise InputError(f"{shown} holds a NUL character, which no process can receive: remove it")
    try:
        encode(text)
    except UnicodeEncodeError as error:
        raise InputError(f"{shown} is not valid text ({error.reason}): remove the lone surrogate") from error


def _render(command: Command, show: Callable[[str, Part], str], *, start: str = "") -> str:
    """`show` gets the name of the variable or flag that a part belongs to ("" for none)."""
    lines = []
    if command.cwd is not None:
        cwd = command.cwd if command.cwd.startswith("/") else f"./{command.cwd}"
        lines.append(f"cd {shlex.quote(cwd)}")
    lines += [f"export {name}={show(name, value)}" for name, value in command.env.items()]
    owners = ("", *(p if isinstance(p, str) and p.startswith("-") else "" for p in command.argv))
    words = [show(owner, part) for owner, part in zip(owners, command.argv, strict=False)]
    return " && ".join([*lines, start + " ".join(words)])


def _hidden(owner: str, word: str) -> str:
    flag, equals, _ = word.partition("=")
    if equals and flag.startswith("-") and _SECRET_NAME.search(flag):
        return f"{flag}={MASK}"
    return MASK if _SECRET_NAME.search(owner) else mask(word)


def _show(name: str, part: Part) -> str:
    if isinstance(part, Secret) or _SECRET_NAME.search(name):
        return MASK
    flag, equals, _ = part.partition("=")
    if equals and flag.startswith("-") and _SECRET_NAME.search(flag):
        return f"{shlex.quote(flag)}={MASK}"
    return mask(shlex.quote(part))
