"""Figures against numbers worked out by hand."""

import json
from typing import Any

import pytest

from moeagent.memory.errors import InputError
from moeagent.tools.load.figures import pack, percentile, recompute, unpack


def one(send: int, gaps: list[int], **changes: Any) -> dict[str, Any]:
    answer = {
        "i": 0, "slot": 0, "due": None, "send": send, "end": send + sum(gaps), "asked": len(gaps),
        "http": 200, "kind": "", "detail": "", "out": len(gaps), "prompt": 10, "cached": None,
        "finish": "length",
        "gaps": gaps, "tokens": None, "crowded": 0,
    }  # fmt: skip
    return answer | changes


def payload(*answers: dict[str, Any], **plan: Any) -> dict[str, Any]:
    health = {
        "cpu_s": 0.1, "wall_s": 1.0, "lag_ms": 0.5, "lag_max_ms": 1.0, "run_queue_s": 0.0, "crowded_cut": 0,
        "loop": "asyncio", "rss_mb": 30,
    }  # fmt: skip
    return {
        "plan": {"concurrency": 1, "requests": len(answers)} | plan, "answers": list(answers),
        "health": [health], "flushed": "", "warmup": [[]], "unsent": 0, "stopped": "",
    }  # fmt: skip


def test_two_requests_by_hand() -> None:
    rung = recompute(pack(payload(one(0, [50_000, 20_000, 10_000]), one(80_000, [70_000, 30_000, 20_000]))))

    assert rung.duration_s == 0.2
    assert rung.output_tok_s == 30.0
    assert rung.total_tok_s == 130.0
    assert rung.ttft_ms is not None
    assert (rung.ttft_ms.mean, rung.ttft_ms.p50) == (60.0, 60.0)
    assert rung.itl_ms is not None
    assert rung.itl_ms.mean == 20.0
    assert rung.tpot_ms is not None
    assert rung.tpot_ms.p50 == 20.0
    assert rung.e2e_ms is not None
    assert rung.e2e_ms.p50 == 100.0
    assert rung.usable


def test_failed_requests_are_counted_by_kind_and_credited_nothing() -> None:
    bad = one(0, [50_000, 20_000], kind="truncated", detail="body ends", out=None, asked=4)
    rung = recompute(pack(payload(one(0, [50_000, 50_000]), bad)))

    assert (rung.completed, rung.failed, rung.failures_by_kind) == (1, 1, {"truncated": 1})
    assert rung.failure_examples == {"truncated": "body ends"}
    assert rung.output_tokens == 2
    assert rung.output_tok_s == 20.0
    assert rung.delivered_tok_s == 40.0
    assert not rung.usable


def test_several_tokens_in_one_event_share_its_gap() -> None:
    stated = recompute(pack(payload(one(0, [10_000, 30_000, 10_000], tokens=[1, 3, 1], out=5, asked=5))))
    unstated = recompute(pack(payload(one(0, [10_000, 30_000, 30_000], out=9, asked=9))))

    assert stated.itl_ms is not None
    assert stated.itl_ms.p50 == 10.0
    assert unstated.itl_ms is not None
    assert unstated.itl_ms.p50 == 10.0
    assert unstated.tokens_per_event == 3.0


def test_goodput_counts_requests_that_meet_every_bound() -> None:
    answers = [one(0, [50_000, 50_000]), one(0, [200_000, 50_000])]
    rung = recompute(pack(payload(*answers, slo={"ttft_ms": 100.0, "tpot_ms": 60.0})))

    assert rung.goodput_rps == 4.0


def test_nothing_complete_gives_no_figures_rather_than_zeros() -> None:
    rung = recompute(pack(payload(one(0, [], kind="http_500", out=None, http=500))))

    assert (rung.output_tok_s, rung.ttft_ms, rung.itl_ms, rung.goodput_rps) == (None, None, None, None)


def test_cache_hits_are_read_back() -> None:
    assert recompute(pack(payload(one(0, [1000], cached=5)))).cache_hit_rate == 0.5


@pytest.mark.parametrize(
    ("plan", "answer", "reason"),
    [
        ({"roofline_tok_s": 10.0}, one(0, [50_000, 50_000]), "roofline"),
        ({"network_rtt_ms": 80.0}, one(0, [50_000, 50_000]), "round trip"),
        ({}, one(0, [50_000, 50_000], out=9, asked=2, kind="wrong_count"), "more tokens than asked"),
        ({}, one(0, [], kind="empty"), "empty"),
    ],
)
def test_implausible_figures_are_invalid(plan: dict, answer: dict, reason: str) -> None:
    assert reason in recompute(pack(payload(answer, **plan))).invalid


def test_the_same_bytes_give_the_same_figures() -> None:
    raw = pack(payload(*(one(n * 1000, [5000 + n, 2000, 1000 + n]) for n in range(50))))

    assert recompute(raw).model_dump_json() == recompute(raw).model_dump_json()
    assert pack(unpack(raw)) == raw


@pytest.mark.parametrize("raw", [b"", b"not zlib", pack({})[:-4]])
def test_damaged_results_are_one_clear_error(raw: bytes) -> None:
    with pytest.raises(InputError, match="per-request results"):
        unpack(raw)


def test_percentiles_interpolate() -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
    assert json.dumps(percentile([1.0], 0.99)) == "1.0"
