"""What is told: one JSON object, the same on standard input and in a POST."""

import shlex
from pathlib import Path
from typing import Any

from moeagent.agent.limits import raise_hint
from moeagent.agent.show.text import config_text, effect_text
from moeagent.memory.records import canonical_json
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.run_view import RunView

ANSWER = "--approve-next"


def payload(folder: RunFolder, view: RunView, root: Path) -> str:
    """run, state, reason, goal, simulated, best, gain, report, commands; `text` says it in one line.

    `state` is finished, stopped, failed, awaiting approval, or crashed for an end that is not on the tape.
    `gain` is a relative change with its interval, null where none is supported.
    """
    state = "crashed" if view.status == "started" else view.status
    gain = view.gain
    return canonical_json(
        {
            "run": view.run,
            "state": state,
            "reason": view.reason,
            "goal": view.goal,
            "simulated": view.simulated,
            "best": _best(view),
            "gain": {"effect": gain.effect, "low": gain.low, "high": gain.high} if gain else None,
            "report": str((folder.path / "report.html").absolute()),
            "commands": {
                "resume": _resume(view, root),
                "report": f"moeagent report {shlex.quote(view.run)}{_where(root)}",
            },
            "text": _text(view, state),
        }
    )


def _best(view: RunView) -> dict[str, Any] | None:
    if view.best is None:
        return None
    return {
        "hypothesis": view.ledger.incumbent.hypothesis if view.ledger.incumbent else None,
        "settings": config_text(view.best),
        "command": view.command_of(view.best),
    }


def _text(view: RunView, state: str) -> str:
    mark = " (simulated)" if view.simulated else ""
    reason = f": {view.reason}" if view.reason else ""
    best = view.ledger.incumbent.hypothesis if view.ledger.incumbent else None
    told = f"best {best or 'the baseline'}, gain {effect_text(view.gain)}" if view.gain else "no gain proven"
    return f"moeagent run {view.run}{mark} {state}{reason}; {told}"


def _resume(view: RunView, root: Path) -> str:
    more = ANSWER if view.status == "awaiting approval" else raise_hint(view.reason)
    return " ".join(filter(None, ["moeagent resume", shlex.quote(view.run), more])) + _where(root)


def _where(root: Path) -> str:
    return f" --runs {shlex.quote(str(root.absolute()))}"
