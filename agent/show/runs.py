"""One line about each run."""

from pathlib import Path
from typing import Any

from moeagent.agent.show.text import effect_text
from moeagent.memory.errors import MoeagentError
from moeagent.memory.run_folder import RunFolder, list_runs
from moeagent.memory.run_view import RunView


def summaries(root: Path) -> list[dict[str, Any]]:
    """A JSON-ready summary of each run, newest first."""
    return [_summary(folder) for folder in list_runs(root)]


def _summary(folder: RunFolder) -> dict[str, Any]:
    try:
        view = RunView.read(folder)
    except MoeagentError as error:
        return {
            "run": folder.id,
            "status": f"damaged: {error}",
            "goal": "",
            "engine": "",
            "model": "",
            "simulated": False,
            "hypotheses": 0,
            "best": "",
            "parent": None,
            "changed": {},
        }
    verdict = view.best_verdict
    gain = view.gain
    settings = view.header["settings"]
    return {
        "run": folder.id,
        "status": view.status,
        "goal": view.goal,
        "engine": settings["engine"]["name"],
        "model": settings["model"],
        "simulated": view.simulated,
        "hypotheses": len(view.ledger.hypotheses),
        "best": f"{verdict.hypothesis} {effect_text(gain)}" if verdict and gain else "baseline",
        "parent": view.header.get("parent"),
        "changed": view.changed,
    }
