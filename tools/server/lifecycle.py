"""Start and stop of one server on a host."""

from collections.abc import Callable

from moeagent.memory.errors import HostError
from moeagent.memory.records.base import Record
from moeagent.tools.hosts.clock import Clock, SystemClock
from moeagent.tools.hosts.command import Command
from moeagent.tools.hosts.ports import check_port, listening_ports
from moeagent.tools.hosts.processes import (
    Process,
    ProcessSpec,
    ProcessState,
    StopReport,
    attach,
    probe,
    start_detached,
    stop,
)
from moeagent.tools.hosts.protocol import Host
from moeagent.tools.hosts.wrapped import Started, WrappedStop, keep_log, runs, stop_wrapped, write_started
from moeagent.tools.hosts.wrappers import Wrapper

SETTLE_S = 20.0
"""How long port and GPU memory may take to be free after the last process has gone."""
_POLL_S = 0.5


class ServerHandle(Record):
    """A server that was started: everything needed to find it again after a crash of moeagent."""

    launch: str
    """L1, L2, ... in the order of the run."""
    folder: str
    """On the host; holds server.log."""
    port: int
    process: Process
    wrapper: Wrapper | None = None
    """What it was started through, where its process here is only a client."""

    @property
    def log(self) -> str:
        """Path of its log on the host."""
        return self.process.log


class ServerStop(Record):
    """What a stop left behind."""

    processes: StopReport
    port_free: bool
    memory_released: bool | None = None
    """None when nobody could say."""
    wrapped: WrappedStop | None = None
    """What its wrapper had started, where there was one."""

    @property
    def gone(self) -> bool:
        """Whether nothing of the server runs any more."""
        return self.processes.gone and (self.wrapped is None or self.wrapped.gone)

    @property
    def clean(self) -> bool:
        """True when the next server finds the host as this one did."""
        return self.gone and self.port_free and self.memory_released is not False


def start_server(
    host: Host,
    command: Command,
    *,
    run: str,
    launch: str,
    folder: str,
    port: int,
    wrapper: Wrapper | None = None,
) -> ServerHandle:
    """Start a server in its folder, tagged RUN/LAUNCH; through a wrapper, what that starts is tagged too.

    Asked again for the same launch it returns the server of the first time, running or not. Raises
    HostError when the port is taken by another, or when the host does not start processes.
    """
    tag = f"{run}/{launch}"
    process = attach(host, folder)
    if process is not None and process.tag != tag:
        raise HostError(f"{host.name}: {folder} holds the server of {process.tag}: give {tag} its own folder")
    if process is None:
        check_port(host, port)
        if wrapper is not None:
            write_started(host, Started(tag=tag, folder=folder, wrapper=wrapper))
            command = wrapper.tagged(command, tag)
        process = start_detached(host, ProcessSpec(command, folder, tag))
    return ServerHandle(launch=launch, folder=folder, port=port, process=process, wrapper=wrapper)


def adopt_server(
    host: Host, *, launch: str, folder: str, port: int, wrapper: Wrapper | None = None
) -> ServerHandle | None:
    """The server that was started in this folder, if it still runs."""
    process = attach(host, folder)
    if process is None:
        return None
    handle = ServerHandle(launch=launch, folder=folder, port=port, process=process, wrapper=wrapper)
    return handle if server_state(host, handle).alive else None


def server_state(host: Host, handle: ServerHandle) -> ProcessState:
    """How the server is; one whose client died lives as long as what the wrapper started."""
    state = probe(host, handle.process)
    if state.alive or state.rebooted or handle.wrapper is None:
        return state
    return state.model_copy(update={"alive": runs(host, handle.wrapper, handle.process.tag)})


def stop_server(
    host: Host,
    handle: ServerHandle,
    *,
    grace_s: float,
    memory_released: Callable[[], bool] | None = None,
    settle_s: float = SETTLE_S,
    clock: Clock | None = None,
) -> ServerStop:
    """Stop politely, then firmly, and look whether processes, port and GPU memory are free again.

    `memory_released` says whether the GPUs are as empty as before the launch.
    """
    clock = clock or SystemClock()
    wrapped = _stop_wrapped(host, handle, grace_s, clock)
    report = stop(host, handle.process, grace_s=grace_s, clock=clock)
    deadline = clock.now() + settle_s
    while True:
        port_free = handle.port not in listening_ports(host)
        memory_free = None if memory_released is None else memory_released()
        if (port_free and memory_free is not False) or clock.now() >= deadline:
            return ServerStop(
                processes=report, port_free=port_free, memory_released=memory_free, wrapped=wrapped
            )
        clock.sleep(_POLL_S)


def _stop_wrapped(host: Host, handle: ServerHandle, grace_s: float, clock: Clock) -> WrappedStop | None:
    """First what the wrapper started, so that its client sees the end and writes the exit code down."""
    wrapper, tag = handle.wrapper, handle.process.tag
    if wrapper is None:
        return None
    if not probe(host, handle.process).alive:
        keep_log(host, wrapper, tag, handle.log)
    return stop_wrapped(host, wrapper, tag, grace_s=grace_s, clock=clock)
