"""The running servers of a run, as they are reached: by a port that a connection may lie under."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from moeagent.agent.events import Events, Progress
from moeagent.agent.interrupt import StopRequest
from moeagent.agent.place import SIM, Place
from moeagent.agent.reconnect import Reconnect
from moeagent.agent.servers import Servers
from moeagent.agent.settings import CampaignSettings
from moeagent.memory.records import ServerConfig
from moeagent.tools.engines.protocol import Engine
from moeagent.tools.load.spec import Target

Result = TypeVar("Result")
FORWARDED_STREAMS = 200
"""Streams that a forwarded port carries without slowing them; more are loaded from the host itself."""


@dataclass
class Reach:
    """One run's host and servers, and whom to tell how far the work is."""

    settings: CampaignSettings
    run: str
    place: Place
    servers: Servers
    engine: Engine
    events: Events
    stop: StopRequest

    @property
    def steady(self) -> Reconnect:
        """Work that outlasts a broken connection."""
        return Reconnect(self.place.host, self.servers, self.events)

    def through(
        self, launch: str, config: ServerConfig, work: Callable[[Target], Result], doing: str
    ) -> Result:
        """Work on the launch's server through a forwarded port, done again when the connection broke."""

        def reached() -> Result:
            self.servers.revive(launch, config)
            with self.servers.port(launch) as port:
                return work(self.target(port))

        return self.steady.through_breaks(launch, reached, f"{doing} ({launch})")

    def target(self, port: int) -> Target:
        """The server behind this port of the machine that asks."""
        return Target(
            base_url=f"http://127.0.0.1:{port}",
            api="openai-completions",
            model=self.place.model,
            extra_body={**self.engine.load.ignore_eos_body, **self.settings.workload.body},
        )

    def on_host(self, concurrency: int) -> bool:
        """Whether the load generator runs on the host itself."""
        where = self.settings.load_from
        remote = self.settings.host.target not in ("local", SIM)
        return remote and (where == "host" or (where == "auto" and concurrency > FORWARDED_STREAMS))

    def fill(self, step: str, done: int, total: int, tokens: int, rate: float) -> None:
        """Tell how far a load is; raises what a wish to stop asks for."""
        self.stop.check()
        self.events.emit(Progress(step, f"{done} of {total or '?'} requests", done, total, rate))
