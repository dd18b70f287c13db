"""One rung of load on a running server, with a look at its GPUs and its log meanwhile."""

from moeagent.agent.effects import KeepRaw
from moeagent.agent.reach import Reach
from moeagent.memory.records import ServerConfig
from moeagent.memory.tape.lines import Json
from moeagent.tools.engines.log_lines import compiling_patterns
from moeagent.tools.load.compiling import compiled_since, length_before, with_compilation
from moeagent.tools.load.gpu_figures import kept_samples, with_gpus
from moeagent.tools.load.on_host import run_rung_on_host
from moeagent.tools.load.runner import run_rung
from moeagent.tools.load.sampling import GpuSampler, Samples
from moeagent.tools.load.spec import RungOutcome, RungSpec

DEATH_S = 10.0
"""After a failed rung the server gets this long to finish dying: SGLang needs seconds to end its ranks."""


class RungLoad:
    """Loads the servers of one run, rung by rung."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._sampler = GpuSampler(reach.place.host)

    def load(self, launch: str, config: ServerConfig, spec: RungSpec, keep: KeepRaw) -> Json:
        """Load the server at one concurrency and look how it is afterwards."""
        reach, servers = self._reach, self._reach.servers
        tries: list[bool] = []

        def measured() -> tuple[RungOutcome, Samples]:
            tries.append(servers.revive(launch, config))
            return self._sampled(launch, spec)

        steady = reach.steady
        kept = steady.through_reboots if reach.on_host(spec.concurrency) else steady.through_breaks
        outcome, samples = kept(launch, measured, f"measuring {launch} at concurrency {spec.concurrency}")
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
        folder, limit_s = self._reach.servers.folder_of(launch), self._reach.settings.rung_timeout_s
        with self._sampler.during(folder, limit_s=limit_s) as samples:
            outcome = self._measure(launch, spec)
        if self._reach.on_host(spec.concurrency):
            samples.ahead_s = 0.0
        return outcome, samples

    def _compiled(self, launch: str, since_s: float, samples: Samples) -> str:
        """What the engine said about kernels that it compiled since a moment by the host's clock."""
        length = length_before(samples.text, since_s)
        if length is None:
            return ""
        log = f"{self._reach.servers.folder_of(launch)}/server.log"
        patterns = compiling_patterns(self._reach.engine.name)
        return compiled_since(self._reach.place.host, log, length, patterns)

    def _measure(self, launch: str, spec: RungSpec) -> RungOutcome:
        """From this machine through a forwarded port, or on the host itself where so many streams want it."""
        reach, deadline_s = self._reach, self._reach.settings.rung_timeout_s
        if reach.on_host(spec.concurrency):
            return run_rung_on_host(
                reach.place.host,
                reach.target(reach.servers.port_on_host(launch)),
                spec,
                folder=reach.servers.folder_of(launch),
                tag=f"{reach.run}/{launch}/load",
                deadline_s=deadline_s,
                on_wait=lambda: reach.fill(f"concurrency {spec.concurrency} on the host", 0, 0, 0, 0.0),
            )
        with reach.servers.port(launch) as port:
            return run_rung(
                reach.target(port),
                spec,
                on_progress=lambda *told: reach.fill(f"concurrency {spec.concurrency}", *told),
                deadline_s=deadline_s,
            )
