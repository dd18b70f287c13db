"""The other side of the world's door: what performs the effects on the real host.

Every effect may be cut by a crash and is then performed again, so each first looks for what is already
there: a server of the same launch that still runs is adopted, never started twice.
"""

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from moeagent.agent import asked
from moeagent.agent.effects import KeepRaw, KeepText
from moeagent.agent.events import Asking, Events, Progress, Unanswered
from moeagent.agent.findings_index import STORE
from moeagent.agent.interrupt import StopRequest
from moeagent.agent.place import SIM, Place, open_place
from moeagent.agent.reach import Reach
from moeagent.agent.rung_load import RungLoad
from moeagent.agent.servers import Servers
from moeagent.agent.settings import CampaignSettings
from moeagent.memory.errors import HostError, RemoteError
from moeagent.memory.findings.alike import Alike
from moeagent.memory.findings.earlier import earlier_launches
from moeagent.memory.findings.store import Finding, FindingsStore
from moeagent.memory.records import Launch, Scope, ServerConfig
from moeagent.memory.records.approval import Question, Said
from moeagent.memory.tape.lines import Json
from moeagent.tools.engines.probe_cache import ProbeCache
from moeagent.tools.engines.probing import run_probes
from moeagent.tools.engines.registry import engine_by_name
from moeagent.tools.hosts.claim import Owner, claim_folder
from moeagent.tools.hosts.command import Command
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.protocol import CommandResult
from moeagent.tools.load.spec import RungSpec
from moeagent.tools.server.readiness import ReadyReport

CONNECT_S = 60.0
PROBES = ".probes"
"""Below the folder of the runs: what slow questions to an engine gave, by its version."""


class Workbench:
    """Host, servers, load generator, findings store and language model of one live run."""

    def __init__(
        self,
        settings: CampaignSettings,
        run: str,
        root: Path,
        events: Events,
        stop: StopRequest,
        approver: Callable[[Question], Said] | None,
        *,
        owner: Owner | None = None,
    ) -> None:
        """Without an owner nothing is claimed on the host: for what starts no server."""
        self._settings = settings
        self._run = run
        self._store = root / STORE
        self._probes = root / PROBES
        self._events = events
        self._stop = stop
        self._approver = approver
        self._owner = owner
        self._engine = engine_by_name(settings.engine.name)
        self._place: Place | None = None
        self._servers: Servers | None = None
        self._rungs: RungLoad | None = None
        self._began = time.monotonic()
        self._active_before: float | None = None

    def clock(self, active_before_s: float) -> Json:
        """Seconds of activity over all resumes."""
        if self._active_before is None:
            self._active_before = active_before_s
        return {"active_s": round(self._active_before + time.monotonic() - self._began, 3)}

    def survey(self) -> Json:
        """Outputs of the survey's commands, base64 because a GGUF's head is binary."""
        from moeagent.tools.survey.survey import run_survey

        place = self._at()
        # A host that cannot be reached is one clear error, not a survey full of failed commands.
        place.host.run(Command(("true",), repeatable=True), timeout_s=CONNECT_S)
        install = next(iter(place.installs.values()))
        # The simulated engine's flags change with moeagent, not with the version that it says it has.
        cache = None if place.host.simulated else ProbeCache(self._probes)
        outputs = run_survey(place.host, self._engine, install, place.model, cache=cache)
        asked = {
            name: run_probes(place.host, self._engine.probes(other), cache=cache)
            for name, other in place.installs.items()
            if other is not install
        }
        return {
            "model": place.model,
            "simulated": place.host.simulated,
            "install": install.model_dump(mode="json"),
            "outputs": _recorded(outputs),
            "further": {
                name: {"install": place.installs[name].model_dump(mode="json"), "outputs": _recorded(results)}
                for name, results in asked.items()
            },
        }

    def known(self, scope: Scope, workload: str, goal: str, besides: str) -> list[Finding]:
        """What earlier runs settled."""
        store = FindingsStore(self._store)
        try:
            return store.known(scope, workload, goal, besides=besides)
        finally:
            store.close()

    def earlier(self, alike: Alike, besides: str) -> tuple[tuple[Launch, ...], ...]:
        """Launches of the baseline in earlier runs that are alike."""
        store = FindingsStore(self._store)
        try:
            return earlier_launches(store, alike, besides)
        finally:
            store.close()

    def start(self, launch: str, config: ServerConfig, keep: KeepText) -> Json:
        """Start or adopt the server of a launch and wait for it."""
        servers = self._own()
        started = self._reach().steady.through_reboots(
            launch, lambda: self._started(launch, config), f"{launch} started"
        )
        if isinstance(started, str):
            return {"outcome": "refused", "command": "", "after_s": 0.0, "reason": started}
        command, report = started
        ready = report.outcome == "ready"
        info = asked.server_info(self._reach(), launch, config) if ready else None
        return {
            "outcome": report.outcome,
            "command": command,
            "after_s": report.after_s,
            "exit_code": report.exit_code,
            "stage": report.stage or "",
            "log": keep(servers.log(launch)),
            "info": info,
            "cmdline": servers.command_line(launch) if ready else [],
            "reason": report.why,
        }

    def _started(self, launch: str, config: ServerConfig) -> tuple[str, ReadyReport] | str:
        """Command and outcome of a start, or why the host refuses it."""
        servers = self._own()
        try:
            command = servers.ensure(launch, config)
        except RemoteError:
            raise
        except HostError as error:
            return servers.mask(str(error))
        return command, servers.wait(
            launch, lambda told: self._tell("launch", told.stage or "", told.last_line)
        )

    def calibrate(self, launch: str, config: ServerConfig, input_len: int) -> Json:
        """How many words make a prompt of the workload's length on this server."""
        return asked.calibrate(self._reach(), launch, config, input_len)

    def first_prompt(self, launch: str, config: ServerConfig, words: int) -> Json:
        """Ask the server that has just become ready for its first long prefill."""
        return asked.first_prompt(self._reach(), launch, config, words)

    def load(self, launch: str, config: ServerConfig, spec: Json, keep: KeepRaw) -> Json:
        """Load the server at one concurrency and look how it is afterwards."""
        if self._rungs is None:
            self._rungs = RungLoad(self._reach())
        return self._rungs.load(launch, config, RungSpec.model_validate(spec), keep)

    def sample_outputs(self, launch: str, config: ServerConfig, wanted: Json) -> Json:
        """Greedy answers for the output check."""
        return asked.sample_outputs(self._reach(), launch, config, wanted)

    def check_task(self, launch: str, config: ServerConfig, command: Sequence[str], timeout_s: float) -> Json:
        """Run the user's own check here against the server."""
        return asked.check_task(self._reach(), launch, config, command, timeout_s)

    def stop(self, launch: str, keep: KeepText) -> Json:
        """Stop a server, verify that it is gone, bring its log."""
        servers = self._own()
        problems = servers.stop(launch)
        log = servers.log(launch)
        return {"verified": not problems, "log": keep(log) if log else None, "problems": problems}

    def complete(self, request: Json) -> Json:
        """One completion of the language model."""
        import os

        from moeagent.tools.llm.perform import perform_completion

        return perform_completion(request, os.environ.get(self._settings.llm.api_key_env))

    def approve(self, question: Question) -> Json:
        """The engineer's answer, and who gave it."""
        self._events.emit(Asking(question))
        said = self._approver(question) if self._approver else Said(answer="awaiting", by="nobody to ask")
        if said.answer == "awaiting":
            self._events.emit(Unanswered(question))
        return said.model_dump(mode="json")

    def stop_everything(self) -> list[str]:
        """Stop every server that this run has running; returns what could not be stopped."""
        return self._servers.stop_all() if self._servers else []

    def close(self) -> None:
        """Let go of the host."""
        if self._place:
            self._place.host.close()

    def _at(self) -> Place:
        if self._place is None:
            self._place = self._opened()
        return self._place

    def _opened(self) -> Place:
        """The host, once this run's folder on it is this run's: nothing of another run is touched."""
        folder = f"{self._settings.host.folder}/{self._run}"
        if self._settings.host.target == SIM:
            if self._owner:
                claim_folder(LocalHost(SIM, simulated=True), folder, self._owner)
            return open_place(self._settings, self._run)
        place = open_place(self._settings, self._run)
        if self._owner:
            claim_folder(place.host, folder, self._owner)
        return place

    def _own(self) -> Servers:
        if self._servers is None:
            self._servers = Servers(self._at(), self._engine, self._settings, self._run, self._stop)
        return self._servers

    def _reach(self) -> Reach:
        return Reach(
            self._settings, self._run, self._at(), self._own(), self._engine, self._events, self._stop
        )

    def _tell(self, step: str, stage: str, line: str) -> None:
        self._stop.check()
        self._events.emit(Progress(step, f"{stage} {self._own().mask(line)[:120]}".strip()))


def _recorded(outputs: Mapping[str, CommandResult]) -> Json:
    return {
        name: {
            "exit_code": result.exit_code,
            "stdout": base64.b64encode(result.stdout).decode(),
            "stderr": base64.b64encode(result.stderr).decode(),
        }
        for name, result in outputs.items()
    }
