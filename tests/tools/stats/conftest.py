from collections.abc import Callable

import pytest

from moeagent.memory.records import ClientHealth, Distribution, Launch, LaunchOutcome, Rung, ServerConfig

MakeRung = Callable[..., Rung]
MakeLaunch = Callable[..., Launch]


def _spread(ms: float) -> Distribution:
    return Distribution(mean=ms, p50=ms, p90=ms, p95=ms, p99=2 * ms)


@pytest.fixture(scope="session")
def rung() -> MakeRung:
    def make(concurrency: int = 1024, speed: float | None = 1600.0, **changes: object) -> Rung:
        fields: dict[str, object] = {
            "concurrency": concurrency, "completed": 2 * concurrency, "failed": 0, "duration_s": 100.0,
            "output_tok_s": speed, "total_tok_s": speed, "ttft_ms": _spread(500.0), "tpot_ms": _spread(20.0),
            "e2e_ms": _spread(30.0 * concurrency),
            "client": ClientHealth(cpu_s=1, loop_lag_ms=0.1, valid=True),
        }  # fmt: skip
        return Rung.model_validate(fields | changes)

    return make


@pytest.fixture(scope="session")
def launch(rung: MakeRung) -> MakeLaunch:
    def make(number: int, speed: float = 1600.0, flag: str = "", **changes: object) -> Launch:
        flags = {flag: True} if flag else {}
        fields: dict[str, object] = {
            "id": f"L{number}",
            "hypothesis": flag or None,
            "config": ServerConfig(engine="sglang", flags=flags),
            "command": "serve",
            "outcome": LaunchOutcome.COMPLETED,
            "rungs": (rung(1024, speed),),
        }
        return Launch.model_validate(fields | changes)

    return make
