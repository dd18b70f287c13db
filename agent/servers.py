"""The servers of one run on its host: started in folders of their own, found again after a crash."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from moeagent.agent.interrupt import StopRequest
from moeagent.agent.place import Place
from moeagent.agent.secret_settings import OwnSecrets
from moeagent.agent.server_folders import ServerFolders
from moeagent.agent.settings import CampaignSettings
from moeagent.memory.errors import EngineError, HostError
from moeagent.memory.records import ServerConfig, fingerprint
from moeagent.tools.engines.protocol import Engine
from moeagent.tools.hosts.clock import SystemClock
from moeagent.tools.hosts.command import Command, masked, without_secrets
from moeagent.tools.hosts.ports import free_port
from moeagent.tools.hosts.processes import Process, ProcessState, attach, find_tagged, probe, reap
from moeagent.tools.hosts.wrapped import read_started, stop_wrapped
from moeagent.tools.hosts.wrappers import Wrapper, resolve
from moeagent.tools.server.gpu_memory import still_held, used_memory
from moeagent.tools.server.lifecycle import ServerHandle, server_state, start_server, stop_server
from moeagent.tools.server.readiness import Progress, ReadyReport, wait_until_ready

GRACE_S = 20.0
"""A polite stop may take this long before the firm one."""
POLL_S = 0.25
FIRST_PORT, PORT_SPAN = 20_000, 10_000
"""Below Linux's range of ephemeral ports, so that no client's connection takes one in between."""


class Servers:
    """One folder per start below the host's moeagent folder; a stopped one is marked as retired."""

    def __init__(
        self, place: Place, engine: Engine, settings: CampaignSettings, run: str, stop: StopRequest
    ) -> None:
        self._place = place
        self._host = place.host
        self._engine = engine
        self._settings = settings
        self._run = run
        self._folders = ServerFolders(place.host, settings.host.folder, run)
        self._stop = stop
        self._handles: dict[str, ServerHandle] = {}
        self._secrets = OwnSecrets(settings.llm.api_key_env)
        self._clock = SystemClock()
        self._memory_before: dict[int, int] | None = None
        """MiB in use by GPU while nothing of this run ran; None when a resume found a server running."""

    def ensure(self, launch: str, config: ServerConfig) -> str:
        """Start the launch's server, or adopt the one that is there; returns the command, masked.

        Raises HostError when it cannot be started.
        """
        known = self._of_this_boot(launch)
        folder = self._folders.current(launch)
        port = self._folders.port_of(folder) if known else free_port(self._host, _first_port(folder))
        command, wrapper = self._command(config, port), self._wrapper(config)
        if known is None:
            if self._memory_before is None and not self._handles:
                self._memory_before = used_memory(self._host)
            self._folders.write_port(folder, port)
        self._handles[launch] = start_server(
            self._host,
            command,
            run=self._run,
            launch=launch,
            folder=folder,
            port=port,
            wrapper=wrapper,
        )
        return masked(wrapper.tagged(command, f"{self._run}/{launch}") if wrapper else command)

    def wait(self, launch: str, on_progress: Callable[[Progress], None]) -> ReadyReport:
        """Wait until the server is ready, dead or hung."""
        report = wait_until_ready(
            self._host,
            self._handles[launch],
            self._engine.ready,
            limit_s=self._settings.start_timeout_s,
            poll_s=POLL_S if self._host.name in ("local", "sim") else 1.0,
            on_progress=on_progress,
        )
        return report.model_copy(update={"why": self._secrets.mask(report.why)})

    def mask(self, text: str) -> str:
        """Any text of a server without secrets."""
        return self._secrets.mask(text)

    def revive(self, launch: str, config: ServerConfig) -> bool:
        """After a resume: adopt the launch's server, or start it again if it is gone. True when started."""
        if launch in self._handles:
            return False
        found = self._found(launch)
        if found is not None and server_state(self._host, found).alive:
            self._handles[launch] = found
            return False
        if found is not None:
            self._give_up(found)
        self.ensure(launch, config)
        report = self.wait(launch, lambda told: self._stop.check())
        if report.outcome != "ready":
            raise EngineError(
                f"{launch} was ready before and is {report.outcome} now that the run goes on: {report.why}"
            )
        return True

    def lost_to_a_reboot(self, launch: str) -> bool:
        """Whether the host was started anew since the launch; its server is then given up.

        `ensure` and `revive` start it again, in a folder of its own.
        """
        handle = self._handles.get(launch)
        if handle is None or not probe(self._host, handle.process).rebooted:
            return False
        del self._handles[launch]
        self._folders.retire(handle.folder)
        return True

    def port(self, launch: str) -> AbstractContextManager[int]:
        """A local port that reaches the server."""
        return self._host.forward(self._handles[launch].port)

    def port_on_host(self, launch: str) -> int:
        """The port that the server has on its own machine."""
        return self._handles[launch].port

    def command_line(self, launch: str) -> list[str]:
        """The words that the server's process has, secrets masked; none where the host does not show them."""
        command = Command(("cat", f"/proc/{self._handles[launch].process.pid}/cmdline"), repeatable=True)
        result = self._host.run(command, timeout_s=60.0)
        words = result.text.split("\0")[:-1] if result.ok else []
        return [self._secrets.mask(word) for word in without_secrets(words)]

    def folder_of(self, launch: str) -> str:
        """The server's folder on its machine."""
        return self._handles[launch].folder

    def settle(self, launch: str, wait_s: float) -> ProcessState:
        """How the server is; one that is dying gets a moment to finish."""
        deadline = self._clock.now() + wait_s
        while True:
            state = server_state(self._host, self._handles[launch])
            if not state.alive or self._clock.now() >= deadline:
                return state
            self._clock.sleep(POLL_S)

    def log(self, launch: str) -> str:
        """The server's whole log, secrets masked; where it is very long, its middle is left out."""
        handle = self._handles.get(launch)
        return self._secrets.mask(self._folders.log(handle.folder if handle else self._folders.last(launch)))

    def stop(self, launch: str) -> list[str]:
        """Stop the server; returns what is not as it should be afterwards."""
        handle = self._handles.get(launch) or self._found(launch)
        if handle is None:
            return []
        # What works on the server for us goes first: a load that the host itself runs.
        reap(self._host, find_tagged(self._host, f"{handle.process.tag}/"), grace_s=0.0)
        released = (lambda: not self._held()) if self._memory_before else None
        report = stop_server(self._host, handle, grace_s=GRACE_S, memory_released=released)
        if report.gone:
            self._folders.retire(handle.folder)
        self._handles.pop(launch, None)
        problems = [] if report.processes.gone else [f"processes {report.processes.remaining} do not end"]
        if report.wrapped and report.wrapped.remaining:
            problems += [f"{report.wrapped.kind} still has {', '.join(report.wrapped.remaining)}"]
        problems += [] if report.port_free else [f"port {handle.port} is still taken"]
        if report.memory_released is False:
            problems += [f"GPU {gpu} holds {mib} MiB more than before" for gpu, mib in self._held().items()]
        return problems

    def stop_all(self) -> list[str]:
        """Stop every server that this object knows; one that cannot be stopped does not spare the others."""
        problems: list[str] = []
        for launch in list(self._handles):
            try:
                problems += self.stop(launch)
            except HostError as error:
                problems.append(f"{launch} could not be stopped: {error}")
        return problems

    def _held(self) -> dict[int, int]:
        return still_held(self._memory_before or {}, used_memory(self._host))

    def _command(self, config: ServerConfig, port: int) -> Command:
        install = self._place.installs.get(config.install)
        if install is None:
            known = ", ".join(self._place.installs)
            raise EngineError(f"there is no engine install {config.install!r}: the settings list {known}")
        return self._engine.command(config, model=self._place.model, port=port, install=install)

    def _found(self, launch: str) -> ServerHandle | None:
        folder = self._folders.current(launch)
        process = attach(self._host, folder)
        if process is None:
            return None
        port, wrapper = self._folders.port_of(folder), self._recorded_wrapper(folder)
        return ServerHandle(launch=launch, folder=folder, port=port, process=process, wrapper=wrapper)

    def _give_up(self, handle: ServerHandle) -> None:
        """Of a server that is dead: what its wrapper keeps of it goes too."""
        if handle.wrapper is not None:
            stop_wrapped(self._host, handle.wrapper, handle.process.tag, grace_s=0.0)
        self._folders.retire(handle.folder)

    def _wrapper(self, config: ServerConfig) -> Wrapper | None:
        """What this configuration's install is started through."""
        spec = self._place.installs[config.install].wrapper
        return None if spec is None else resolve(spec)

    def _recorded_wrapper(self, folder: str) -> Wrapper | None:
        """What the server of a folder was started through; not asked where no install has a wrapper."""
        if all(install.wrapper is None for install in self._place.installs.values()):
            return None
        started = read_started(self._host, folder)
        return started.wrapper if started else None

    def _of_this_boot(self, launch: str) -> Process | None:
        """The process of the launch's latest start; one that a reboot ended is retired."""
        folder = self._folders.current(launch)
        process = attach(self._host, folder)
        if process is None or not probe(self._host, process).rebooted:
            return process
        self._folders.retire(folder)
        return None


def _first_port(folder: str) -> int:
    """Where to look for a free port: servers of two runs that start together must not meet."""
    return FIRST_PORT + int(fingerprint(folder, digits=8), 16) % PORT_SPAN
