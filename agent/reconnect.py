"""Effects that outlast a broken connection and a rebooted host: what was cut is done again, nothing else."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from moeagent.agent.events import Events, Progress
from moeagent.agent.servers import Servers
from moeagent.memory.errors import HostError, RemoteError
from moeagent.tools.hosts.protocol import Host
from moeagent.tools.hosts.unbroken import unbroken

Result = TypeVar("Result")

REBOOTS = 2
"""A host that goes down more often under one launch does so because of it, or is ill."""


@dataclass
class Reconnect:
    """The host, its servers, and whom to tell."""

    host: Host
    servers: Servers
    events: Events

    def through_breaks(self, launch: str, work: Callable[[], Result], doing: str) -> Result:
        """Work whose traffic goes through the connection: its result counts only if the connection held.

        Before it is done again, a server that a reboot took is given up, so that `work` may revive it.
        """

        def again() -> None:
            self._tell(f"the connection broke while {doing}: once more")
            self.servers.lost_to_a_reboot(launch)

        return unbroken(self.host, work, doing, on_break=again)

    def through_reboots(self, launch: str, work: Callable[[], Result], doing: str) -> Result:
        """Work that goes on by itself on the host: it is done again only where a reboot ended it.

        Raises HostError when the host was rebooted more than `REBOOTS` times.
        """
        for _ in range(REBOOTS + 1):
            before, problem = self.host.breaks, None
            try:
                result = work()
            except RemoteError:
                raise
            except HostError as error:
                problem = error
            if self.host.breaks == before or not self.servers.lost_to_a_reboot(launch):
                if problem is not None:
                    raise problem
                return result
            self._tell(f"the host was rebooted while {doing}: once more")
        raise HostError(
            f"{self.host.name} was rebooted {REBOOTS + 1} times while {doing}: look at its console for the "
            "reason (`last -x`, `journalctl -b -1`), then resume"
        )

    def _tell(self, text: str) -> None:
        self.events.emit(Progress("connection", text))
