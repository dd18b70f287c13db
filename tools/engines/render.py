"""From a configuration to the words of a launch command."""

from moeagent.memory.errors import InputError
from moeagent.memory.records import FlagValue, ServerConfig
from moeagent.tools.engines.catalogue import catalogue
from moeagent.tools.engines.denied import denied_env, denied_flag
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.hosts.protocol import Command


def launch(config: ServerConfig, install: EngineInstall, default: tuple[str, ...], own: list[str]) -> Command:
    """The launch command: the install's prefix (or the engine's default), moeagent's own words, the flags.

    Flags are sorted by name, so that equal configurations give equal commands.
    Raises InputError for a flag or variable of the deny list and for a flag with the value False.
    """
    refuse_denied(config, install)
    words = [*(install.command or default), *own]
    for name, value in sorted(config.flags.items()):
        words += render_flag(config.engine, name, value)
    env = {**install.env, **config.env}
    return Command(argv=tuple(words), env=dict(sorted(env.items())))


def refuse_denied(config: ServerConfig, install: EngineInstall) -> None:
    """Raises InputError when the configuration holds something of the deny list."""
    for flag in config.flags:
        reason = denied_flag(config.engine, flag, allow=install.allow)
        if reason:
            raise InputError(f"{flag} is not passed to {config.engine}: {reason}. Remove it")
    for name in config.env:
        reason = denied_env(name, allow=install.allow)
        if reason:
            raise InputError(f"The variable {name} is not passed to {config.engine}: {reason}. Remove it")


def render_flag(engine: str, name: str, value: FlagValue) -> list[str]:
    """One flag as words: bare when True, several words when the flag takes a list, joined by `=` when the
    value itself begins with a dash and is no number.
    """
    if value is True:
        return [name]
    if value is False:
        raise InputError(f"{name} = false means nothing to {engine}: leave the flag out")
    text = str(value)
    entry = catalogue(engine).entry(name)
    if entry is not None and entry.several and isinstance(value, str):
        return [name, *_words(engine, name, text)]
    if text.startswith("-") and name.startswith("--") and not _is_number(text):
        return [f"{name}={text}"]
    return [name, text]


def _words(engine: str, name: str, text: str) -> list[str]:
    """The words of a list; one that begins with a dash would be another flag."""
    words = text.split()
    for word in words:
        if word.startswith("-") and not _is_number(word):
            raise InputError(f"{name}: {word!r} begins with a dash: {engine} would take it for a flag")
    return words


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
