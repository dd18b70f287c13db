"""The workbench of a campaign in virtual time: a world's launches stand where servers and loads stood."""

from collections.abc import Callable, Sequence

from moeagent.agent.settings import LlmSettings
from moeagent.agent.worlds.bench import Bench, Trial
from moeagent.memory.findings.alike import Alike
from moeagent.memory.findings.store import Finding
from moeagent.memory.records import ClientHealth, Launch, LaunchOutcome, Rung, Scope, ServerConfig
from moeagent.memory.records.approval import Question
from moeagent.memory.tape.lines import Json
from moeagent.tools.output_check.sample import Answer, BatchSample, OutputSample

STARTED = {
    LaunchOutcome.COMPLETED: "ready", LaunchOutcome.DIED_SERVING: "ready", LaunchOutcome.STOPPED: "ready",
    LaunchOutcome.DIED_STARTING: "died", LaunchOutcome.HUNG_STARTING: "hung",
    LaunchOutcome.REFUSED: "refused",
}  # fmt: skip


class VirtualBench:
    """Effects of one campaign on one world; a launch is simulated whole when its server starts."""

    def __init__(self, bench: Bench, llm: LlmSettings, ladder: Callable[[], tuple[int, ...]]) -> None:
        self._bench = bench
        self._llm = llm
        self._ladder = ladder
        """Concurrencies that the launch under way will climb, canary rungs included."""
        self._trials: dict[str, Trial] = {}

    def clock(self, active_before_s: float) -> Json:
        """Virtual seconds so far."""
        return {"active_s": round(sum(trial.outcome.cost_s for trial in self._bench.trials), 3)}

    def survey(self) -> Json:
        """Never asked: a world tells its facts in records, so the campaign begins after its survey."""
        raise AssertionError("a world has no command line to survey")

    def known(self, scope: Scope, workload: str, goal: str, besides: str) -> list[Finding]:
        """Worlds have no past."""
        return []

    def earlier(self, alike: Alike, besides: str) -> tuple[tuple[Launch, ...], ...]:
        """Worlds have no past."""
        return ()

    def start(self, launch: str, config: ServerConfig, keep: Callable[[str], str]) -> Json:
        """Launch in the world."""
        trial = self._bench.launch(config, ladder=self._ladder())
        self._trials[launch] = trial
        outcome = trial.outcome
        return {
            "outcome": STARTED[outcome.outcome],
            "command": "virtual",
            "after_s": outcome.cost_s if outcome.ready_after_s is None else outcome.ready_after_s,
            "exit_code": outcome.exit_code,
        }

    def calibrate(self, launch: str, config: ServerConfig, input_len: int) -> Json:
        """A virtual word is a token."""
        return {"words": input_len, "problem": ""}

    def first_prompt(self, launch: str, config: ServerConfig, words: int) -> Json:
        """Worlds die under load, not of a single prompt."""
        return {"problem": ""}

    def load(self, launch: str, config: ServerConfig, spec: Json, keep: Callable[[bytes], str]) -> Json:
        """The launch's rung at this concurrency."""
        outcome, concurrency = self._trials[launch].outcome, spec["concurrency"]
        rung = next((r for r in outcome.rungs if r.concurrency == concurrency), None)
        died = outcome.died_at == concurrency or rung is None
        if rung is None:
            rung = nothing_at(concurrency)
        return {
            "rung": rung.model_dump(mode="json"),
            "alive": not died,
            "exit_code": outcome.exit_code if died else None,
        }

    def sample_outputs(self, launch: str, config: ServerConfig, asked: Json) -> Json:
        """The identity of the launch's answers in place of their text."""
        text = self._trials[launch].outcome.answers
        answers = tuple(Answer(prompt=i, text=text) for i in range(len(asked["prompts"])))
        batches = tuple(BatchSample(batch_size=size, answers=answers) for size in asked["batch_sizes"])
        return {"sample": OutputSample(batches=batches).model_dump(mode="json")}

    def check_task(self, launch: str, config: ServerConfig, command: Sequence[str], timeout_s: float) -> Json:
        """Never asked: worlds set no command."""
        raise AssertionError("a world has no server that a command could ask")

    def stop(self, launch: str, keep: Callable[[str], str]) -> Json:
        """The server is gone; its log is the launch's."""
        return {"verified": True, "log": keep(self._trials[launch].outcome.log)}

    def complete(self, request: Json) -> Json:
        """One completion of the language model, in real time."""
        import os

        from moeagent.tools.llm.perform import perform_completion

        return perform_completion(request, os.environ.get(self._llm.api_key_env))

    def approve(self, question: Question) -> Json:
        """Virtual launches cost nobody anything."""
        return {"answer": "yes", "by": "virtual time"}

    def stop_everything(self) -> list[str]:
        """Nothing runs."""
        return []


def nothing_at(concurrency: int) -> Rung:
    """A rung that the world did not reach."""
    return Rung(
        concurrency=concurrency, completed=0, failed=concurrency, duration_s=0.0, output_tok_s=None,
        total_tok_s=None, client=ClientHealth(cpu_s=0.0, loop_lag_ms=0.0, valid=True),
    )  # fmt: skip
