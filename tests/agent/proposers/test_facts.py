import pytest

from moeagent.agent.proposers.expression import UnknownFactError
from moeagent.agent.proposers.facts import FACT_NAMES, facts_of, functions_of
from moeagent.agent.proposers.playbook import Playbook
from moeagent.agent.proposers.protocol import Draft
from moeagent.agent.proposers.spelling import Spelling
from moeagent.memory.records import ConfigChange, Gpu, Knob


def test_each_replica_has_a_pool_of_its_own(sm120_view):
    one = facts_of(sm120_view)["kv_seqs"]
    replicas = sm120_view.incumbent.apply(ConfigChange(set_flags={"--dp-size": 4}))
    launches = tuple(x.model_copy(update={"config": replicas}) for x in sm120_view.launches)
    view = sm120_view.model_copy(update={"incumbent": replicas, "launches": launches})
    assert facts_of(view)["kv_seqs"] == 4 * one


def test_every_fact_has_its_name(sm120_view, llamacpp_view):
    for view in (sm120_view, llamacpp_view):
        assert facts_of(view).keys() == FACT_NAMES


def test_the_machine_and_the_model_are_read(sm120_view):
    facts = facts_of(sm120_view)
    wanted = {"gpus": 8, "sm": 120, "nvlink": False, "moe": True, "experts": 256, "mla": True, "mtp": True}
    assert {name: facts[name] for name in wanted} == wanted
    assert facts["quant"] == "nvfp4"
    assert facts["kv_seqs"] == pytest.approx(490880 / 2048)


def test_a_language_model_inside_a_larger_one_is_found(sm120_view):
    model = sm120_view.model.model_copy(update={"config": {"text_config": sm120_view.model.config}})
    facts = facts_of(sm120_view.model_copy(update={"model": model}))
    assert (facts["experts"], facts["layers"]) == (256, 78)


def test_nvlink_is_read_from_the_topology(sm120_view):
    host = sm120_view.host.model_copy(update={"topology": "GPU0 GPU1\nGPU0 X NV18\nGPU1 NV18 X"})
    assert facts_of(sm120_view.model_copy(update={"host": host}))["nvlink"] is True
    host = sm120_view.host.model_copy(update={"topology": None})
    assert facts_of(sm120_view.model_copy(update={"host": host}))["nvlink"] is None


def test_a_value_in_force_is_the_configurations_then_the_engines_then_the_default(llamacpp_view):
    view = llamacpp_view
    flag = functions_of(view, view.incumbent, Spelling(view.engine))["flag"]
    assert flag("--parallel") == 1
    assert flag("-ub") == 512
    with pytest.raises(UnknownFactError):
        flag("--unheard-of")
    told = tuple(x.model_copy(update={"effective": {"ubatch_size": "1024"}}) for x in view.launches)
    flag = functions_of(view.model_copy(update={"launches": told}), view.incumbent, Spelling(view.engine))[
        "flag"
    ]
    assert flag("-ub") == 1024


def test_odd_facts_never_stop_a_proposal(sm120_view):
    gpu = Gpu(index=0, name="?", memory_mib=0, compute_capability="[N/A]")
    odd = {"quantization_config": "fp8", "n_routed_experts": "many", "num_hidden_layers": -1}
    strange = ConfigChange(
        set_flags={"--tp-size": "eight", "--mem-fraction-static": "0.9", "--max-running-requests": "all"}
    )
    baseline = sm120_view.baseline.apply(strange)
    view = sm120_view.model_copy(
        update={
            "host": sm120_view.host.model_copy(update={"gpus": (gpu,), "topology": "???"}),
            "model": sm120_view.model.model_copy(update={"config": odd, "size_gib": None}),
            "engine": sm120_view.engine.model_copy(update={"version": "main-abc"}),
            "baseline": baseline,
            "incumbent": baseline,
            "launches": (),
        }
    )
    assert isinstance(Playbook().propose(view), Draft)


def test_one_flag_under_many_names(llamacpp_view):
    spelling = Spelling(llamacpp_view.engine, renamed={"--old": "--parallel"})
    assert spelling.find("--parallel", {"-np": 1}) == "-np"
    assert spelling.declared("--old").name == "--parallel"
    change = spelling.respell(ConfigChange(set_flags={"--parallel": 4}), llamacpp_view.baseline)
    assert change.set_flags == {"-np": 4}
    same = llamacpp_view.baseline.apply(ConfigChange(set_flags={"--ubatch-size": 512}))
    assert spelling.effective_key(same) == spelling.effective_key(llamacpp_view.baseline)


def test_a_removed_flag_is_not_declared(llamacpp_view):
    engine = llamacpp_view.engine.model_copy(
        update={"knobs": (Knob(name="--x", kind="int", status="removed"),)}
    )
    assert Spelling(engine).declared("--x") is None
