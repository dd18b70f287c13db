import pytest

from moeagent.agent.proposers.playbook import Playbook
from moeagent.memory.records import Goal


def strengths(view):
    return {limit.name: limit.strength for limit in Playbook().limits(view)}


def test_one_slot_under_many_streams_is_a_batch_cap(llamacpp_view):
    first = Playbook().limits(llamacpp_view)[0]
    assert first.name == "batch-cap"
    assert "32 streams ask, the configuration runs 1" in first.evidence


def test_a_pool_smaller_than_the_load_is_a_kv_limit_on_pcie_with_communication(sm120_view):
    found = strengths(sm120_view)
    assert next(iter(found)) == "kv-capacity"
    assert found["communication"] > 0.1
    assert "batch-cap" not in found


def test_forced_eager_execution_binds_the_host(h200_view):
    assert next(iter(strengths(h200_view))) == "host-cpu"


def test_few_streams_are_bound_by_reading_the_weights(sm120_view):
    view = sm120_view.model_copy(update={"goal": Goal(name="min-latency")})
    found = strengths(view)
    assert found["memory-bandwidth"] == pytest.approx(0.6)
    assert "kv-capacity" not in found


def test_nothing_is_claimed_before_a_measurement(sm120_view):
    assert strengths(sm120_view.model_copy(update={"launches": ()})) == {}


def test_a_distorted_client_is_named(llamacpp_view):
    launch = llamacpp_view.launches[-1]
    bad = launch.rungs[-1].client.model_copy(update={"valid": False, "why": "timer late by 80 ms"})
    rungs = (*launch.rungs[:-1], launch.rungs[-1].model_copy(update={"client": bad}))
    view = llamacpp_view.model_copy(update={"launches": (launch.model_copy(update={"rungs": rungs}),)})
    assert "client" in strengths(view)
    nothing_usable = tuple(r.model_copy(update={"client": bad, "invalid": "client"}) for r in launch.rungs)
    view = view.model_copy(update={"launches": (launch.model_copy(update={"rungs": nothing_usable}),)})
    assert list(strengths(view)) == ["client"]
