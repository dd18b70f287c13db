"""One faulty request in four: nothing is credited beyond what was received, and each is counted by kind."""

import time
from collections.abc import Iterator
from statistics import median

import pytest
from bench.loadgen.scripted import CLOSE, Received, ScriptedServer, completion, events
from bench.loadgen.truth import TruthServer

from moeagent.memory.records import Rung
from moeagent.tools.load import RandomPrompts, RungSpec, Target, WarmUp, recompute, run_rung
from moeagent.tools.load.arrivals import arrivals
from moeagent.tools.load.spec import ApiName, StopRule

pytestmark = pytest.mark.part("cc")
WORDS = RandomPrompts(words=16)


def load(server: TruthServer, api: ApiName = "openai-chat", **changes: object) -> Rung:
    spec = RungSpec(concurrency=5, requests=40, output_len=32, random=WORDS, warmup=None).model_copy(
        update=changes
    )
    outcome = run_rung(Target(base_url=server.url, api=api), spec, deadline_s=60)
    assert recompute(outcome.raw) == outcome.rung
    return outcome.rung


@pytest.mark.parametrize("api", ["openai-chat", "openai-completions", "sglang"])
@pytest.mark.parametrize(
    ("fault", "kind"),
    [("err_every", "in_stream_error"), ("fail_every", "truncated"), ("stop_every", "early_stop")],
)
def test_one_faulty_request_in_four(truth: TruthServer, api: ApiName, fault: str, kind: str) -> None:
    truth.reset(**{fault: 4})

    rung = load(truth, api)

    sent = truth.sent()
    complete = [s for s in sent if s.complete]
    assert (rung.completed, rung.failed) == (len(complete), 10) == (30, 10)
    assert rung.failures_by_kind == {kind: 10}
    assert rung.output_tokens == sum(len(s.token_ns) for s in complete) == 960
    assert rung.failure_examples[kind]
    assert not rung.usable


@pytest.mark.parametrize("api", ["openai-chat", "openai-completions", "sglang"])
def test_a_healthy_server_is_counted_whole(truth: TruthServer, api: ApiName) -> None:
    truth.reset()

    rung = load(truth, api)

    assert (rung.completed, rung.failed, rung.output_tokens) == (40, 0, 1280)
    assert rung.prompt_tokens == 40 * 128
    assert rung.tokens_per_event is not None
    assert rung.tokens_per_event >= 1.0


def test_a_role_chunk_is_no_first_token(truth: TruthServer) -> None:
    truth.reset(role=2)

    rung = load(truth)

    assert rung.ttft_ms is not None
    assert rung.ttft_ms.p50 >= 9.9


def test_two_processes_share_one_rung(truth: TruthServer) -> None:
    truth.reset()

    rung = load(truth, processes=2)

    assert (rung.completed, rung.client.processes) == (40, 2)
    assert max(len(s.token_ns) for s in truth.sent()) == 32


def test_open_loop_sends_at_the_times_it_was_given(truth: TruthServer) -> None:
    truth.reset()
    when = arrivals("constant", 200.0, 60, seed="1")

    rung = load(truth, arrivals=when, requests=None)

    starts = sorted(s.first_byte_ns for s in truth.sent())
    assert (rung.completed, rung.request_rate) == (60, 200.0)
    late = [start / 1e9 - due for start, due in zip(starts, when.times_s, strict=True)]
    # A busy machine may delay any one of them, the first too; none is early, and most are on time.
    assert median(late) - min(late) < 0.02
    assert (starts[-1] - starts[0]) / 1e9 < 1.0


def test_a_duration_ends_the_rung(truth: TruthServer) -> None:
    truth.reset()

    rung = load(truth, requests=None, duration_s=0.5, warmup=WarmUp(max_waves=2, output_len=4))

    assert rung.completed >= 5
    assert rung.failed == 0
    assert rung.duration_s >= 0.5


def test_warm_up_is_not_in_the_figures(truth: TruthServer) -> None:
    truth.reset()

    rung = load(truth, warmup=WarmUp(min_waves=2, max_waves=2, output_len=4), flush_path="/flush_cache")

    assert rung.completed == 40
    assert len(truth.sent()) == 50


def test_a_server_that_dies_in_mid_rung_leaves_what_was_measured() -> None:
    def dying(request: Received) -> list[object]:
        if request.number < 6:
            return events(*completion(request.body["max_tokens"]))
        server.__exit__()
        return [*events(*completion(3)[:2], done=False), CLOSE]

    with ScriptedServer(dying) as server:
        spec = RungSpec(concurrency=2, requests=400, output_len=5, random=WORDS, warmup=None)
        rung = run_rung(Target(base_url=server.url, api="openai-completions"), spec, deadline_s=60).rung

    assert rung.completed >= 6
    assert rung.output_tokens == 5 * rung.completed
    assert rung.failures_by_kind["truncated"] >= 1
    assert rung.failed < 10
    assert "no longer takes connections" in rung.note
    assert "never sent" in rung.note


@pytest.mark.parametrize(("floor", "cut"), [(1000.0, True), (2.0, False)])
def test_a_rung_far_below_the_floor_is_ended_early(floor: float, cut: bool) -> None:
    def trickling(request: Received) -> Iterator[bytes]:
        for part in events(*completion(request.body["max_tokens"])):
            time.sleep(0.02)
            yield part

    with ScriptedServer(trickling) as server:
        stop = StopRule(below_events_s=floor, after_s=0.4)
        spec = RungSpec(concurrency=2, requests=6, output_len=24, random=WORDS, warmup=None, stop=stop)
        rung = run_rung(Target(base_url=server.url, api="openai-completions"), spec, deadline_s=60).rung

    assert ("answer clear" in rung.note) is cut
    assert rung.usable is not cut
    assert rung.failures_by_kind == ({"stopped": 2} if cut else {})
    assert (rung.completed < 6) is cut
    assert (rung.output_tokens or 0) == 24 * rung.completed, "what was cut is credited with nothing"


def test_a_stop_rule_ends_a_hopeless_rung() -> None:
    with ScriptedServer(lambda _: events({"error": {"message": "CUDA error"}})) as server:
        spec = RungSpec(concurrency=2, requests=400, random=WORDS, warmup=None, stop={"max_failed": 3})
        rung = run_rung(Target(base_url=server.url, api="openai-chat"), spec, deadline_s=60).rung

    assert 4 <= rung.failures_by_kind["in_stream_error"] < 10
    assert "requests failed" in rung.note
