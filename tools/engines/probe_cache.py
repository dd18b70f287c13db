"""Answers of slow probes, kept by the version of the engine that gave them.

Importing an engine to read its parser takes up to two minutes; the parser of one version does not change.
"""

import json
from base64 import b64decode, b64encode
from pathlib import Path

from moeagent.memory.records import fingerprint
from moeagent.tools.engines.protocol import Probe
from moeagent.tools.hosts.protocol import CommandResult


class ProbeCache:
    """One JSON file per answer in a folder; a damaged file counts as none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def key(self, host: str, probe: Probe, version: CommandResult) -> str:
        """Identity of an answer: host, command (with the script that it runs) and the engine's version."""
        command = [str(part) for part in probe.command.argv]
        return fingerprint({"host": host, "command": command, "version": version.text}, digits=24)

    def get(self, key: str) -> CommandResult | None:
        """The kept answer, or None."""
        try:
            kept = json.loads((self._folder / f"{key}.json").read_text())
            return CommandResult(kept["exit_code"], b64decode(kept["stdout"]), b64decode(kept["stderr"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, key: str, result: CommandResult) -> CommandResult:
        """Keeps an answer that went well, and returns it."""
        if result.exit_code == 0:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f"{key}.json"
            partial = path.with_suffix(".partial")
            streams = {
                "stdout": b64encode(result.stdout).decode(),
                "stderr": b64encode(result.stderr).decode(),
            }
            partial.write_text(json.dumps({"exit_code": 0, **streams}))
            partial.replace(path)
        return result
