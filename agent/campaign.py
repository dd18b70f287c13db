"""The four ways to run a campaign: anew, on from where it stopped, again from its tape, and from a fork."""

import getpass
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import tomli_w

from moeagent.agent.approval.answers import awaited
from moeagent.agent.drive import drive
from moeagent.agent.effects import Effects
from moeagent.agent.events import Events
from moeagent.agent.findings_index import keep_indexed
from moeagent.agent.interrupt import StopRequest, stop_on_signals
from moeagent.agent.loop import Loop
from moeagent.agent.loop_version import check_stamp, stamp
from moeagent.agent.notify.hook import told_at_the_end
from moeagent.agent.pause import PauseWatch, Slice
from moeagent.agent.predictor import CampaignPredictor
from moeagent.agent.proposers.playbook import Playbook
from moeagent.agent.proposing import seat_proposer
from moeagent.agent.settings import CampaignSettings
from moeagent.agent.show.as_json import json_text
from moeagent.agent.show.files import write_reports
from moeagent.agent.show.report import markdown
from moeagent.agent.workbench import Workbench
from moeagent.agent.world import World
from moeagent.memory.errors import AwaitingApproval, DivergenceError, MoeagentError, TapeError
from moeagent.memory.ledger import Ledger
from moeagent.memory.lock import held
from moeagent.memory.records import fingerprint
from moeagent.memory.records.approval import Question, Said
from moeagent.memory.run_folder import RunFolder, new_run_id, write_private
from moeagent.memory.run_view import RunView
from moeagent.memory.tape.fork import check_line, fork_tape
from moeagent.memory.tape.lines import Json
from moeagent.memory.tape.tape import EndOfTapeError, Tape
from moeagent.tools.engines.registry import engine_by_name
from moeagent.tools.hosts.claim import Owner
from moeagent.tools.hosts.clock import SystemClock

Approver = Callable[[Question], Said]


def create(settings: CampaignSettings, root: Path, run_id: str | None = None) -> RunFolder:
    """A new run folder with its tape begun and its settings written down."""
    now, program = datetime.now(UTC), stamp()
    folder = RunFolder.create(root, run_id or new_run_id(now, secrets.token_hex(2)))
    resolved = settings.model_dump(mode="json", exclude_none=True)
    write_private(folder.path / "campaign.toml", tomli_w.dumps(resolved).encode())
    header = {
        **program,
        "run": folder.id,
        "created_at": now.isoformat(timespec="seconds"),
        "owner": new_owner(),
        "settings": settings.model_dump(mode="json"),
        "parent": None,
    }
    Tape.record(folder.tape, header).close()
    return folder


def resume(
    folder: RunFolder,
    root: Path,
    amend: Json,
    events: Events,
    approver: Approver | None = None,
    *,
    pause_after: Slice | None = None,
) -> None:
    """Replay what is recorded, then go on live. Raises the MoeagentError that ended the run.

    Raises Paused at the end of the slice, InputError while another process works on the run,
    AwaitingApproval when it ends with a question.
    """
    stop = StopRequest()
    if pause_after:
        events.listeners.append(PauseWatch(pause_after, stop, SystemClock(), _launches_in(folder)))
    taken_over = partial(stop.ask, "another moeagent process, which took the run over")
    with held(folder.path, taken_over), told_at_the_end(folder, root, events):
        ledger = _go_on(folder, root, amend, events, approver, stop)
    waiting = awaited(ledger)
    if waiting is not None:
        raise AwaitingApproval(
            f"{waiting.hypothesis} waits for approval ({waiting.by}): `moeagent resume {folder.id} "
            "--approve-next` launches it, --decline-next or --skip-next goes on without it"
        )


def _go_on(
    folder: RunFolder, root: Path, amend: Json, events: Events, approver: Approver | None, stop: StopRequest
) -> Ledger:
    header = folder.read_tape().header
    check_stamp(header)
    settings = CampaignSettings(**header["settings"])
    marker = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "amend": amend}
    tape = Tape.resume(folder.tape, marker)
    owner = owner_of(header, folder)
    workbench = Workbench(settings, folder.id, root, events, stop, approver, owner=owner)
    loop = build_loop(settings, tape, folder, workbench, stop, events)
    try:
        with stop_on_signals(stop), keep_indexed(root, folder.id, header, loop.ledger, events):
            drive(loop)
        return loop.ledger
    finally:
        workbench.close()
        tape.close()
        # On a full disk the error that ended the run matters; `moeagent report` prints the report anyway.
        with suppress(OSError):
            write_reports(folder)


def _launches_in(folder: RunFolder) -> int:
    entries = folder.read_tape().entries
    return sum(entry.type == "decision" and entry.body["kind"] == "launch" for entry in entries)


def replay(folder: RunFolder) -> dict[str, Any]:
    """Run the loop over the tape alone. Raises DivergenceError at the first difference."""
    recorded = folder.read_tape()
    check_stamp(recorded.header)
    tape = Tape.replay(folder.tape)
    settings = CampaignSettings(**recorded.header["settings"])
    loop = build_loop(settings, tape, folder, None, StopRequest(), Events())
    view = RunView.read(folder)
    ended = f"{view.status}: {view.reason}" if view.reason else view.status
    try:
        drive(loop)
    except EndOfTapeError:
        if view.status not in ("stopped", "started"):
            raise
    except TapeError:
        raise
    except MoeagentError as error:
        _same_end(str(error), view)
    _same_text(view, loop.ledger)
    counts = [entry.type for entry in recorded.entries]
    return {
        "run": view.run,
        "events": counts.count("request"),
        "decisions": counts.count("decision"),
        "ended": ended,
        "same": True,
    }


def fork(source: RunFolder, root: Path, at_line: int, run_id: str | None = None) -> RunFolder:
    """A new run that is the source up to a tape line; `resume` goes on from there.

    Raises InputError where the line is not there.
    """
    now, tape = datetime.now(UTC), source.read_tape()
    check_line(tape, at_line)
    folder = RunFolder.create(root, run_id or new_run_id(now, secrets.token_hex(2)))
    header = {
        **tape.header,
        "run": folder.id,
        "owner": new_owner(),
        "created_at": now.isoformat(timespec="seconds"),
        "parent": {"run": source.id, "line": at_line},
    }
    fork_tape(source.tape, folder.tape, at_line=at_line, header=header)
    for kind in ("logs", "load"):
        for blob in (source.path / kind).iterdir():
            write_private(folder.path / kind / blob.name, blob.read_bytes())
    return folder


def new_owner() -> str:
    """What tells this run from another one of the same name on a host."""
    return secrets.token_hex(8)


def owner_of(header: Json, folder: RunFolder) -> Owner:
    """Whose this run's folder on the host is; tapes of the first version are told apart by their header."""
    by = f"{getpass.getuser()}@{socket.gethostname()}"
    return Owner(
        id=header.get("owner") or fingerprint(header, digits=16), by=by, place=str(folder.path.resolve())
    )


def build_loop(
    settings: CampaignSettings,
    tape: Tape,
    folder: RunFolder,
    workbench: Effects | None,
    stop: StopRequest,
    events: Events,
) -> Loop:
    """The parts of a campaign, put together the same way for a live run and for a replay."""
    world = World(tape, folder, workbench, stop)
    ledger = Ledger()
    predictor = CampaignPredictor(settings.workload, ledger)
    playbook = Playbook(predictor)
    loop = Loop(
        settings=settings,
        tape=tape,
        world=world,
        engine=engine_by_name(settings.engine.name),
        ledger=ledger,
        playbook=playbook,
        proposer=playbook,
        predictor=predictor,
        events=events,
    )
    seat_proposer(loop)
    return loop


def _same_end(message: str, view: RunView) -> None:
    if message != view.reason:
        raise DivergenceError(f"the run ended with {view.reason!r}, its replay with {message!r}")


def _same_text(view: RunView, replayed: Ledger) -> None:
    """Log and report of the replayed decisions, byte for byte those of the recorded ones."""
    again = view.with_ledger(replayed)
    if json_text(again.to_json()) != json_text(view.to_json()) or markdown(again) != markdown(view):
        raise DivergenceError("the replayed decisions give another log or report than the recorded ones")
