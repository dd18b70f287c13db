"""From a launch's recorded command back to its words: the inverse of `tools.hosts.command.masked`.

A recorded command is `cd DIR && export NAME=VALUE && ... && PROGRAM ARGUMENT...`, quoted by shlex, with each
secret replaced by a bare `***`. Text that really was `***` is quoted, so the two are told apart.
"""

import re
from collections.abc import Iterator

from moeagent.agent.export.words import Slot, Start, Word
from moeagent.memory.errors import TapeError
from moeagent.tools.hosts.command import MASK

_CHUNK = re.compile(r"""'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<bare>[^\s'"]+)|(?P<gap> )""")
_PASSWORD = re.compile(r"(?<=://)([^/@\s:]*:)\*\*\*(?=@)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOLE = "\0"
"""Where a secret stood: a character that no command can hold."""
_AND = ("&&", True)


def recorded_start(command: str) -> Start:
    """The words of a recorded command. Raises TapeError for text that `masked` does not give."""
    parts: list[list[str]] = [[]]
    for text, bare in _words(command):
        if (text, bare) == _AND:
            parts.append([])
        else:
            parts[-1].append(text)
    *before, program = parts
    if not program or not program[0]:
        raise TapeError(f"the recorded command {command[:80]!r} names no program")
    variables = _Variables()
    env: dict[str, Word] = {}
    cwd = None
    for words in before:
        match words:
            case ["cd", folder]:
                cwd = folder
            case ["export", assignment] if "=" in assignment:
                name, _, value = assignment.partition("=")
                env[name] = _word(value, name, variables)
            case _:
                raise TapeError(f"the recorded command {command[:80]!r} is not one that moeagent recorded")
    owners = ("", *(text if text.startswith("-") else "" for text in program))
    argv = tuple(_word(text, owner, variables) for text, owner in zip(program, owners, strict=False))
    return Start(argv, env, cwd)


class _Variables:
    """Names for the variables that secrets are to be given in, each its own."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def next(self, owner: str, suffix: str) -> str:
        """A name after the flag or variable that the secret belongs to."""
        base = owner if _NAME.fullmatch(owner) else re.sub(r"[^A-Za-z0-9]+", "_", owner).strip("_").upper()
        base = (base or "SECRET") + suffix
        name, number = base, 2
        while name in self._taken:
            name, number = f"{base}_{number}", number + 1
        self._taken.add(name)
        return name


def _words(command: str) -> Iterator[tuple[str, bool]]:
    """Each word with holes for its secrets, and whether it stood there without quotes."""
    text, bare, position = "", True, 0
    marked = _PASSWORD.sub(rf"\1{_HOLE}", command)
    while position < len(marked):
        found = _CHUNK.match(marked, position)
        if found is None:
            raise TapeError(f"the recorded command {command[:80]!r} is not one that moeagent recorded")
        position = found.end()
        if found["gap"]:
            yield text, bare
            text, bare = "", True
        elif found["bare"] is not None:
            text += found["bare"].replace(MASK, _HOLE)
        else:
            text, bare = text + (found["single"] or found["double"] or ""), False
    yield text, bare


def _word(text: str, owner: str, variables: _Variables) -> Word:
    """The word's text, with a slot at each hole."""
    whole = text == _HOLE
    flag, equals, value = text.partition("=")
    if equals and value == _HOLE:
        owner, whole = flag, True
    first, *rest = text.split(_HOLE)
    word: list[str | Slot] = [first] if first else []
    for piece in rest:
        word.append(Slot(variables.next(owner.partition("=")[0], "" if whole else "_PASSWORD")))
        word += [piece] if piece else []
    return tuple(word) or ("",)
