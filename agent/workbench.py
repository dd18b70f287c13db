"""The other side of the world's door: what performs the effects on the real host.

Every effect may be cut by a crash and is then performed again, so each first looks for what is already
there: a server of the same launch that still runs is adopted, never started twice.
"""

import base64
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from moeagent.agent.events import Asking, Events, Progress, Unanswered
from moeagent.agent.findings_index import STORE
from moeagent.agent.interrupt import StopRequest
from moeagent.agent.place import SIM, Place, open_place
from moeagent.agent.reconnect import Reconnect
from moeagent.agent.servers import Servers
from moeagent.agent.settings import CampaignSettings
from moeagent.memory.errors import HostError, MoeagentError, RemoteError
from moeagent.memory.findings.alike import Alike
from moeagent.memory.findings.earlier import earlier_launches
from moeagent.memory.findings.store import Finding, FindingsStore
from moeagent.memory.records import Launch, Scope, ServerConfig
from moeagent.memory.records.approval import Question, Said
from moeagent.memory.tape.lines import Json
from moeagent.tools.engines.log_lines import compiling_patterns
from moeagent.tools.engines.probe_cache import ProbeCache
from moeagent.tools.engines.probing import run_probes
from moeagent.tools.engines.registry import engine_by_name
from moeagent.tools.hosts.claim import Owner, claim_folder
from moeagent.tools.hosts.command import Command
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.protocol import CommandResult
from moeagent.tools.load.compiling import compiled_since, length_before, with_compilation
from moeagent.tools.load.gpu_figures import kept_samples, with_gpus
from moeagent.tools.load.on_host import run_rung_on_host
from moeagent.tools.load.probe import ask, calibrate, probe
from moeagent.tools.load.runner import run_rung
from moeagent.tools.load.sampling import GpuSampler, Samples
from moeagent.tools.load.spec import RungOutcome, RungSpec, Target
from moeagent.tools.output_check.sample import OutputSample
from moeagent.tools.output_check.task import TaskResult
from moeagent.tools.server.readiness import ReadyReport

Result = TypeVar("Result")
KeepText = Callable[[str], str]
KeepRaw = Callable[[bytes], str]
DEATH_S = 10.0
"""After a failed rung the server gets this long to finish dying: SGLang needs seconds to end its ranks."""
INFO_TIMEOUT_S = 20.0
CONNECT_S = 60.0
CALIBRATE_S = 60.0
"""Longest time for each of the prompts that tell how many tokens a word is."""
FIRST_PROMPT_S = 600.0
"""The first prefill may compile kernels: as long as a request may wait for its first byte in a rung."""
PROBES = ".probes"
"""Below the folder of the runs: what slow questions to an engine gave, by its version."""
FORWARDED_STREAMS = 200
"""Streams that a forwarded port carries without slowing them; more are loaded from the host itself."""


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
        self._sampler: GpuSampler | None = None
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
        cache = ProbeCache(self._probes)
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
        started = self._steady().through_reboots(
            launch, lambda: self._started(launch, config), f"{launch} started"
        )
        if isinstance(started, str):
            return {"outcome": "refused", "command": "", "after_s": 0.0, "reason": started}
        command, report = started
        ready = report.outcome == "ready"
        info = self._info(launch, config) if ready else None
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
        try:
            timeout_s = min(CALIBRATE_S, self._settings.rung_timeout_s)
            found = self._through(
                launch,
                config,
                lambda target: calibrate(target, input_len, timeout_s=timeout_s),
                "counting its tokens",
            )
        except RemoteError:
            raise
        except HostError as error:
            return {"words": None, "problem": str(error)}
        return {
            "words": found.words,
            "problem": "" if found.measured else "the server counts no prompt tokens",
        }

    def first_prompt(self, launch: str, config: ServerConfig, words: int) -> Json:
        """Ask the server that has just become ready for its first long prefill."""

        def asked(target: Target) -> str:
            try:
                timeout_s = min(FIRST_PROMPT_S, self._settings.rung_timeout_s)
                probe(target, words, timeout_s=timeout_s, seed=f"first/{launch}", exact=False)
            except RemoteError:
                raise
            except MoeagentError as error:
                return str(error)
            return ""

        problem = self._through(launch, config, asked, "asking it for its first long prompt")
        if problem:
            # What it says while it dies belongs into its log.
            self._own().settle(launch, DEATH_S)
        return {"problem": problem}

    def load(self, launch: str, config: ServerConfig, spec: Json, keep: KeepRaw) -> Json:
        """Load the server at one concurrency and look how it is afterwards."""
        servers, rung_spec = self._own(), RungSpec.model_validate(spec)
        tries: list[bool] = []

        def measured() -> tuple[RungOutcome, Samples]:
            tries.append(servers.revive(launch, config))
            return self._sampled(launch, rung_spec)

        steady = self._steady()
        kept = steady.through_reboots if self._on_host(rung_spec.concurrency) else steady.through_breaks
        outcome, samples = kept(
            launch, measured, f"measuring {launch} at concurrency {rung_spec.concurrency}"
        )
        rung = outcome.rung.model_copy(update={"raw": keep(outcome.raw)})
        if outcome.window_s is not None and samples.text:
            rung = with_gpus(rung, kept_samples(samples, outcome.window_s, keep))
            rung = with_compilation(
                rung, self._compiled(launch, outcome.window_s[0] + samples.ahead_s, samples)
            )
        state = servers.settle(launch, DEATH_S if rung.failed else 0.0)
        return {
            "rung": rung.model_dump(mode="json"),
            "alive": state.alive,
            "exit_code": state.exit_code,
            "relaunched": any(tries),
            "cut": len(tries) - 1,
        }

    def _sampled(self, launch: str, spec: RungSpec) -> tuple[RungOutcome, Samples]:
        """Measure, with a look at the GPUs each second; the samples are stamped by the load's clock."""
        folder, limit_s = self._own().folder_of(launch), self._settings.rung_timeout_s
        if self._sampler is None:
            self._sampler = GpuSampler(self._at().host)
        with self._sampler.during(folder, limit_s=limit_s) as samples:
            outcome = self._measure(launch, spec)
        if self._on_host(spec.concurrency):
            samples.ahead_s = 0.0
        return outcome, samples

    def _compiled(self, launch: str, since_s: float, samples: Samples) -> str:
        """What the engine said about kernels that it compiled since a moment by the host's clock."""
        length = length_before(samples.text, since_s)
        if length is None:
            return ""
        log, patterns = f"{self._own().folder_of(launch)}/server.log", compiling_patterns(self._engine.name)
        return compiled_since(self._at().host, log, length, patterns)

    def _measure(self, launch: str, spec: RungSpec) -> RungOutcome:
        """From this machine through a forwarded port, or on the host itself where so many streams want it."""
        servers, deadline_s = self._own(), self._settings.rung_timeout_s
        if self._on_host(spec.concurrency):
            return run_rung_on_host(
                self._at().host,
                self._target(servers.port_on_host(launch)),
                spec,
                folder=servers.folder_of(launch),
                tag=f"{self._run}/{launch}/load",
                deadline_s=deadline_s,
                on_wait=lambda: self._fill(f"concurrency {spec.concurrency} on the host", 0, 0, 0, 0.0),
            )
        with servers.port(launch) as port:
            return run_rung(
                self._target(port),
                spec,
                on_progress=lambda *told: self._fill(f"concurrency {spec.concurrency}", *told),
                deadline_s=deadline_s,
            )

    def _on_host(self, concurrency: int) -> bool:
        where = self._settings.load_from
        remote = self._settings.host.target not in ("local", SIM)
        return remote and (where == "host" or (where == "auto" and concurrency > FORWARDED_STREAMS))

    def sample_outputs(self, launch: str, config: ServerConfig, asked: Json) -> Json:
        """Greedy answers for the output check."""
        from moeagent.tools.output_check.collect import collect

        def answered(target: Target) -> OutputSample:
            return collect(
                target.base_url,
                model=target.model,
                prompts=asked["prompts"],
                batch_sizes=asked["batch_sizes"],
                max_tokens=asked["max_tokens"],
                timeout_s=self._settings.rung_timeout_s,
            )

        sample = self._through(launch, config, answered, "asking it for its answers")
        return {"sample": sample.model_dump(mode="json")}

    def check_task(self, launch: str, config: ServerConfig, command: Sequence[str], timeout_s: float) -> Json:
        """Run the user's own check here against the server."""
        from moeagent.tools.output_check.task import run_task

        def asked(target: Target) -> TaskResult:
            env = {
                "MOEAGENT_BASE_URL": target.base_url,
                "OPENAI_BASE_URL": f"{target.base_url}/v1",
                "MOEAGENT_MODEL": target.model,
            }
            return run_task(command, env, timeout_s=timeout_s, on_wait=self._stop.check)

        found = self._through(launch, config, asked, "the task check")
        told = self._own().mask(found.told)
        return found.model_copy(update={"told": told}).model_dump(mode="json")

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

    def _steady(self) -> Reconnect:
        return Reconnect(self._at().host, self._own(), self._events)

    def _through(
        self, launch: str, config: ServerConfig, work: Callable[[Target], Result], doing: str
    ) -> Result:
        """Work on the launch's server through a forwarded port, done again when the connection broke."""

        def reached() -> Result:
            self._own().revive(launch, config)
            with self._own().port(launch) as port:
                return work(self._target(port))

        return self._steady().through_breaks(launch, reached, f"{doing} ({launch})")

    def _target(self, port: int) -> Target:
        return Target(
            base_url=f"http://127.0.0.1:{port}",
            api="openai-completions",
            model=self._at().model,
            extra_body={**self._engine.load.ignore_eos_body, **self._settings.workload.body},
        )

    def _info(self, launch: str, config: ServerConfig) -> dict[str, Any] | None:
        path = self._engine.load.info_path
        if path is None:
            return None
        info = self._through(
            launch, config, lambda target: ask(target, path, INFO_TIMEOUT_S), "asking for its settings"
        )
        # Servers tell their whole command line, keys included.
        return json.loads(self._own().mask(json.dumps(info))) if isinstance(info, dict) else None

    def _tell(self, step: str, stage: str, line: str) -> None:
        self._stop.check()
        self._events.emit(Progress(step, f"{stage} {self._own().mask(line)[:120]}".strip()))

    def _fill(self, step: str, done: int, total: int, tokens: int, rate: float) -> None:
        self._stop.check()
        self._events.emit(Progress(step, f"{done} of {total or '?'} requests", done, total, rate))


def _recorded(outputs: Mapping[str, CommandResult]) -> Json:
    return {
        name: {
            "exit_code": result.exit_code,
            "stdout": base64.b64encode(result.stdout).decode(),
            "stderr": base64.b64encode(result.stderr).decode(),
        }
        for name, result in outputs.items()
    }
