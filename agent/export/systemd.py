"""As a systemd service unit; quoting by systemd.syntax(7), systemd.service(5) and systemd.exec(5)."""

from moeagent.agent.export.records import Export, comments
from moeagent.agent.export.words import Start, Word, plain_text, spelled, texts
from moeagent.memory.errors import InputError

_PROGRAM_MARKS = "@-:+!|"
"""Characters that systemd reads as a mark when a program's name begins with one."""
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@")
_CONTROL = frozenset({*range(32), 127} - {ord("\t"), ord("\n")})
"""Refused in variables since the value of one must be printable but for tabs and newlines."""
_FOLDER = "/etc/moeagent"


def systemd_unit(export: Export) -> str:
    """A unit that starts the server at boot and again when it dies.

    Raises InputError for what no unit can carry: control characters, a program name with marks.
    """
    _refuse(export.start)
    start = export.start
    secret_env = [name for name, value in start.env.items() if not _is_text(value)]
    lines = [*comments(export), *_secret_comments(export, secret_env), *_search_comment(start)]
    lines += ["[Unit]", f"Description={_specifiers(export.name)}"]
    lines += ["Wants=network-online.target", "After=network-online.target", "", "[Service]"]
    lines += [
        f"Environment={_quoted(f'{name}={plain_text(value)}')}"
        for name, value in start.env.items()
        if name not in secret_env
    ]
    lines += [f"EnvironmentFile={_secrets_file(export)}"] if start.secrets else []
    lines += [f"WorkingDirectory={_specifiers(start.cwd)}"] if start.cwd is not None else []
    lines += ["ExecStart=" + " ".join(_argument(word) for word in start.argv)]
    lines += ["Restart=on-failure", "", "[Install]", "WantedBy=multi-user.target"]
    return "\n".join(lines) + "\n"


def _refuse(start: Start) -> None:
    program = plain_text(start.argv[0])
    if program[0] in _PROGRAM_MARKS or "$" in program:
        raise InputError(f"systemd reads marks in the program name {program!r}: export it as sh")
    if any(ord(character) in _CONTROL for text in texts(start) for character in text):
        raise InputError("the command holds control characters, which systemd refuses: export it as sh")
    if start.cwd is not None and (not start.cwd.startswith("/") or "\n" in start.cwd):
        raise InputError(f"systemd wants an absolute folder, not {start.cwd!r}: export it as sh")


def _secret_comments(export: Export, secret_env: list[str]) -> list[str]:
    """Which lines the file of secrets needs; a variable that holds a secret stands there whole."""
    names = [*secret_env, *Start(export.start.argv, {}).secrets]
    return [f"# {_secrets_file(export)} (mode 0600) holds: {name}=..." for name in names]


def _search_comment(start: Start) -> list[str]:
    if "/" in plain_text(start.argv[0]):
        return []
    return ["# systemd has a search path of its own: add ExecSearchPath= where the program is not on it"]


def _secrets_file(export: Export) -> str:
    return f"{_FOLDER}/{export.name}.secrets"


def _argument(word: Word) -> str:
    """One word of ExecStart: a slot is filled from the environment, which never splits it."""
    if _is_text(word):
        return _quoted(plain_text(word), dollar="$$")
    inside = spelled(word, lambda text: _escaped(text, dollar="$$"), lambda name: f"${{{name}}}")
    return f'"{inside}"'


def _quoted(text: str, *, dollar: str = "$") -> str:
    return text if text and set(text) <= _PLAIN else f'"{_escaped(text, dollar=dollar)}"'


def _escaped(text: str, *, dollar: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return _specifiers(text).replace("$", dollar)


def _specifiers(text: str) -> str:
    return text.replace("%", "%%")


def _is_text(word: Word) -> bool:
    return all(isinstance(part, str) for part in word)
