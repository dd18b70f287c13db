"""The part of `moeagent doctor` that looks at a run's folder."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from moeagent.memory.lock import LockState
    from moeagent.memory.salvage import RunCheck


def doctor_run(name: str, runs: Path, *, wants_salvage: bool, as_json: bool) -> None:
    """Say how a run's folder is; with `wants_salvage`, make a new run of what is sound.

    Exit code 6 when the run is damaged and was not salvaged.
    """
    import json

    from moeagent.memory.run_folder import find_run
    from moeagent.memory.salvage import check_run

    folder = find_run(runs, name)
    check = check_run(folder)
    saved = _salvage(folder.path, runs, check) if wants_salvage and not check.sound else None
    if as_json:
        told = {**check.model_dump(mode="json"), "sound": check.sound, "salvaged": saved}
        typer.echo(json.dumps(told, ensure_ascii=False))
    else:
        for line in _lines(check, saved):
            typer.echo(line)
    if not check.sound and saved is None:
        raise typer.Exit(6)


def _salvage(path: Path, runs: Path, check: "RunCheck") -> str:
    from datetime import UTC, datetime

    from moeagent.memory.run_folder import RunFolder
    from moeagent.memory.salvage import salvage

    header = {
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "parent": {"run": check.run, "line": check.usable_lines},
    }
    return salvage(RunFolder(path), runs, _free_name(runs, f"{check.run}-salvaged"), header).id


def _free_name(runs: Path, wanted: str) -> str:
    number, name = 1, wanted
    while (runs / name).exists():
        number += 1
        name = f"{wanted}-{number}"
    return name


def _lines(check: "RunCheck", saved: str | None) -> list[str]:
    state = {
        "sound": f"sound, {check.sound_lines} lines",
        "torn": f"sound, {check.sound_lines} lines; its cut last line is passed over",
        "damaged": f"damaged: {check.problem}; the {check.sound_lines} lines before it are sound",
    }
    lines = [f"tape     {state[check.tape]}", f"lock     {_lock(check.lock)}"]
    lines += [f"file     {why}" for why in check.damaged_files.values()] or [
        "files    all as the tape names them"
    ]
    if check.sound:
        return [*lines, f"nothing to mend; go on with: moeagent resume {check.run}"]
    lines.append(f"can be saved: everything up to line {check.usable_lines}")
    if saved:
        return [*lines, f"saved as {saved}; go on with: moeagent resume {saved}"]
    return [
        *lines,
        f"save it as a new run, the old one is not touched: moeagent doctor {check.run} --salvage",
    ]


def _lock(lock: "LockState") -> str:
    if lock.holder is None:
        return "free"
    return f"held by {lock.holder}" if lock.alive else f"left by {lock.holder}, which is gone: free"
