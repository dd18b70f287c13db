"""As a POSIX shell script."""

import shlex

from moeagent.agent.export.records import Export, comments
from moeagent.agent.export.words import Word, spelled


def shell_script(export: Export) -> str:
    """A script for `sh` that becomes the server; it stops with a message where a secret is not set."""
    start = export.start
    lines = ["#!/bin/sh", *comments(export), "set -eu"]
    lines += [f': "${{{name}:?set {name} to the secret of the measured command}}"' for name in start.secrets]
    lines += [f"export {name}={_spelled(value)}" for name, value in start.env.items()]
    if start.cwd is not None:
        lines.append(f"cd {shlex.quote(start.cwd)}")
    lines.append("exec " + " ".join(_spelled(word) for word in start.argv))
    return "\n".join(lines) + "\n"


def _spelled(word: Word) -> str:
    return spelled(word, shlex.quote, lambda name: f'"${{{name}}}"')
