"""A recorded campaign of any size, written to a real tape without running one: for what reads runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moeagent.agent.settings import CampaignSettings
from moeagent.memory.ledger import (
    CampaignFacts,
    Conclusion,
    Incumbent,
    Limit,
    RejectedIdea,
    kind_of,
    value_of,
)
from moeagent.memory.records import (
    ClientHealth,
    ConfigChange,
    Constraint,
    Diagnosis,
    Distribution,
    Effect,
    Goal,
    HostFacts,
    Hypothesis,
    Launch,
    LaunchOutcome,
    ModelFacts,
    Pivot,
    PredictedEffect,
    PredictionScore,
    Record,
    Remedy,
    Rung,
    Scope,
    ServerConfig,
    StabilityBoundary,
    Symptom,
    Verdict,
    VerdictKind,
    Workload,
)
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.tape.tape import Tape

LADDER = (1, 10, 64, 256)
BASELINE = ServerConfig(engine="sglang", flags={"--tp-size": 8, "--mem-fraction-static": 0.92})
GOAL = Goal(constraints=(Constraint(metric="ttft", percentile="p99", bound=2.0),))
CYCLE = (
    VerdictKind.IMPROVED,
    VerdictKind.REGRESSED,
    VerdictKind.BLOCKED,
    VerdictKind.NEUTRAL,
    VerdictKind.INCONCLUSIVE,
)
FACTOR = {VerdictKind.IMPROVED: 1.08, VerdictKind.REGRESSED: 0.8, VerdictKind.BLOCKED: 1.1}
CAUSE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB."
LOG = "\n".join(["server starts", "loading weights", CAUSE, "Traceback (most recent call last):", "exit 1"])


class MadeRun:
    """Writes decisions to a tape as the loop does."""

    def __init__(self, root: Path, run_id: str, **settings: Any) -> None:
        self.folder = RunFolder.create(root, run_id)
        chosen = {"model": "/models/GLM-5", "goal": GOAL, "workload": Workload(ladder=LADDER), **settings}
        self.settings = CampaignSettings(**chosen)
        header = {
            "run": run_id,
            "created_at": "2026-11-29T20:00:00+00:00",
            "settings": self.settings.model_dump(mode="json"),
            "parent": None,
            "loop": 1,
            "moeagent": "0.1.0",
        }
        self._tape = Tape.record(self.folder.tape, header)
        self._launches = 0

    def decide(self, record: Record) -> None:
        """One decision."""
        self.decide_raw(kind_of(record), value_of(record))

    def decide_raw(self, kind: str, value: dict[str, Any]) -> None:
        """A decision as another version may have written it."""
        self._tape.decide(kind, value)

    def launch(
        self,
        config: ServerConfig,
        hypothesis: str | None = None,
        *,
        factor: float = 1.0,
        diagnosis: Diagnosis | None = None,
        log: str = LOG,
    ) -> Launch:
        """A launch over the whole ladder; with a diagnosis it dies at the last rung."""
        self._launches += 1
        dead = diagnosis is not None
        wobble = 1 + 0.01 * (self._launches % 3 - 1)
        launch = Launch(
            id=f"L{self._launches}",
            hypothesis=hypothesis,
            config=config,
            command=f"python -m sglang.launch_server --tp-size 8 # {config.id}",
            outcome=LaunchOutcome.DIED_SERVING if dead else LaunchOutcome.COMPLETED,
            ready_after_s=240.0,
            rungs=tuple(rung(c, factor * wobble, dead=dead and c == LADDER[-1]) for c in LADDER),
            boundary=StabilityBoundary(last_good=LADDER[-2], first_failed=LADDER[-1]) if dead else None,
            diagnosis=diagnosis,
            log=self.folder.put_text(log),
            simulated=True,
        )
        self.decide(launch)
        self._tape.perform("clock", {}, lambda: {"active_s": 300.0 * self._launches})
        return launch

    def ask(self, kind: str, request: dict[str, Any], answer: dict[str, Any] | None = None) -> None:
        """An effect; without an answer it is under way."""
        if answer is not None:
            self._tape.perform(kind, request, lambda: answer)
            return
        assert self._tape._writer is not None
        self._tape._writer.append("request", {"kind": kind, "request": request})

    def load(self, launch: str, concurrency: int, rung: Rung | None = None) -> None:
        """A rung that was measured, or that is filling up."""
        spec = {"concurrency": concurrency, "requests": 2 * concurrency}
        told = {"rung": rung.model_dump(mode="json"), "alive": True} if rung else None
        self.ask("load", {"launch": launch, "spec": spec}, told)

    def close(self) -> RunFolder:
        """The folder of the run as it stands."""
        self._tape.close()
        return self.folder


def rung(concurrency: int, factor: float = 1.0, *, dead: bool = False) -> Rung:
    """Plausible figures: throughput saturates, latency grows with the load."""
    tok_s = factor * 7000 * concurrency / (concurrency + 80)
    e2e = 1000 * 256 * concurrency / tok_s
    return Rung(
        concurrency=concurrency,
        completed=0 if dead else 2 * concurrency,
        failed=2 * concurrency if dead else 0,
        failures_by_kind={"connection": 2 * concurrency} if dead else {},
        duration_s=30.0,
        output_tok_s=None if dead else tok_s,
        total_tok_s=None if dead else 2 * tok_s,
        ttft_ms=None if dead else spread(20 + concurrency * 9),
        tpot_ms=None if dead else spread(e2e / 256),
        itl_ms=None if dead else spread(e2e / 256),
        e2e_ms=None if dead else spread(e2e),
        client=ClientHealth(cpu_s=1.0, loop_lag_ms=0.5, valid=True),
    )


def spread(middle: float) -> Distribution:
    """A distribution around a median."""
    return Distribution(mean=middle, p50=middle, p90=middle * 1.1, p95=middle * 1.2, p99=middle * 1.3)


def facts(*, simulated: bool = True, gpu: str = "RTX PRO 6000", model: str = "GLM-5") -> CampaignFacts:
    """A survey's result."""
    return CampaignFacts(
        host=HostFacts(name="gpu1", machine_id="m1", driver="580.95.05", cuda="13.0", cpu_cores=64),
        engine="sglang",
        engine_version="0.5.9",
        knobs_source="parser",
        knob_count=331,
        model=ModelFacts(path=f"/models/{model}"),
        scope=Scope(
            gpu=gpu, gpu_count=8, engine="sglang", engine_version="0.5.9", model=model, simulated=simulated
        ),
        problems=("52 pairs of GPUs have no peer-to-peer access",),
    )


def out_of_memory(text: str = CAUSE) -> Diagnosis:
    """A failure with its causing line at line 3 of the log."""
    return Diagnosis(
        failure_class="oom.cuda.serve",
        confidence=0.87,
        root_line=text,
        line_no=3,
        stage="serving",
        symptoms=(Symptom(line_no=4, line="Traceback (most recent call last):", reason="follows the cause"),),
        remedies=(
            remedy("--mem-fraction-static", "lower", "0.92 -> 0.88"),
            remedy("--chunked-prefill-size", "lower", "halve it"),
            remedy("other processes", "action", "stop them"),
        ),
        explanation="a GPU allocation failed at run time",
    )  # fmt: skip


def remedy(target: str, direction: Any, change: str) -> Remedy:
    """One thing to change."""
    return Remedy(target=target, direction=direction, change=change, why="it needs room", source="made")


def hypothesis(number: int, change: ConfigChange, parent: ServerConfig, **other: Any) -> Hypothesis:
    """A hypothesis with a prediction at two concurrencies."""
    fields: dict[str, Any] = {
        "id": f"H{number}",
        "statement": f"Chunked prefill of {number} KiB keeps the GPUs busier",
        "reason": "prefill binds at high load",
        "change": change,
        "parent": parent.id,
        "predicted": tuple(
            PredictedEffect(concurrency=c, effect=0.05, low=-0.02, high=0.12) for c in (64, 256)
        ),
        "refuted_by": "no gain at 256",
        "category": "batching",
        "source": "playbook",
        "prior": "",
    }
    return Hypothesis(**{**fields, **other})


def verdict(number: int, kind: VerdictKind, measured: float) -> Verdict:
    """A verdict whose interval is eight points wide."""

    def effect(concurrency: int | None) -> Effect:
        low, high = measured - 0.04, measured + 0.04
        return Effect(concurrency=concurrency, effect=measured, low=low, high=high, launches=(3, 3))

    blocked = kind is VerdictKind.BLOCKED
    score = PredictionScore(
        concurrency=256,
        predicted=0.05,
        measured=measured,
        inside=abs(measured) < 0.1,
        sign_right=measured > 0,
    )
    return Verdict(
        hypothesis=f"H{number}",
        kind=kind,
        goal_effect=None if blocked else effect(None),
        effects=() if blocked else tuple(effect(c) for c in LADDER),
        predictions=() if blocked else (score,),
        reason=f"{measured:+.1%}, {kind.value}",
    )


def write_run(
    root: Path,
    run_id: str = "made",
    *,
    hypotheses: int = 5,
    kinds: Sequence[VerdictKind] = CYCLE,
    ended: bool = True,
    survey: CampaignFacts | None = None,
    **settings: Any,
) -> RunFolder:
    """A whole campaign: verdicts cycle through `kinds`; what follows an improvement builds on it."""
    run = MadeRun(root, run_id, **settings)
    run.decide(survey or facts())
    best = Incumbent(config=BASELINE, hypothesis=None)
    run.decide(best)
    for _ in range(2):
        run.launch(BASELINE)
    run.decide(Limit(name="communication", evidence="all-reduces take 25 of 26 ms per step"))
    factor = 1.0
    for number in range(1, hypotheses + 1):
        kind = kinds[(number - 1) % len(kinds)]
        launched = factor * FACTOR.get(kind, 1.004)
        config = try_idea(run, number, kind, best.config, launched, factor)
        if kind is VerdictKind.IMPROVED:
            best, factor = Incumbent(config=config, hypothesis=f"H{number}"), launched
            run.decide(best)
    run.decide(
        RejectedIdea(
            statement="Balance the experts",
            change=ConfigChange(set_flags={"--enable-eplb": True}),
            reason="refuted in an earlier run",
            source="playbook",
        )
    )
    if ended:
        run.decide(conclusion(best, factor - 1, hypotheses))
    return run.close()


def try_idea(
    run: MadeRun, number: int, kind: VerdictKind, parent: ServerConfig, launched: float, factor: float
) -> ServerConfig:
    """A hypothesis with its launches, a pivot where it fails, and its verdict."""
    change = ConfigChange(set_flags={"--chunked-prefill-size": 1024 * number})
    config, name = parent.apply(change), f"H{number}"
    run.decide(hypothesis(number, change, parent))
    failure = out_of_memory() if kind is VerdictKind.BLOCKED else None
    run.launch(config, name, factor=launched, diagnosis=failure)
    if failure:
        lower = config.apply(ConfigChange(set_flags={"--mem-fraction-static": 0.88}))
        run.decide(
            Pivot(
                hypothesis=name,
                attempt=1,
                remedy="--mem-fraction-static 0.92 -> 0.88: head-room",
                config_before=config.id,
                config_after=lower.id,
            )
        )
        run.launch(lower, name, factor=launched, diagnosis=failure)
    run.decide(verdict(number, kind, launched / factor - 1))
    return config


def conclusion(best: Incumbent, gain: float, hypotheses: int, **other: Any) -> Conclusion:
    """The end of a run whose best configuration was confirmed, if it is not the baseline."""
    won = best.hypothesis is not None
    effect = Effect(concurrency=None, effect=gain, low=gain - 0.03, high=gain + 0.03, launches=(3, 3))
    fields: dict[str, Any] = {
        "status": "finished",
        "reason": f"the limit of {hypotheses} experiments is reached",
        "best": best.config,
        "best_hypothesis": best.hypothesis,
        "confirmation": "confirmed" if won else "not-run",
        "confirmed_gain": effect if won else None,
        "confirmation_reason": "3 fresh launches a side" if won else "",
    }
    return Conclusion(**{**fields, **other})
