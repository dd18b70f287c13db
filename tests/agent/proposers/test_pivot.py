import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moeagent.agent.proposers.pivot import next_pivot
from moeagent.agent.proposers.remedies import parse_remedies, remedy_book
from moeagent.agent.proposers.view import CampaignView
from moeagent.memory.errors import InputError
from moeagent.memory.records import (
    ConfigChange,
    Diagnosis,
    EngineFacts,
    Goal,
    HostFacts,
    Hypothesis,
    Knob,
    Launch,
    LaunchOutcome,
    ModelFacts,
    Pivot,
    Remedy,
    ServerConfig,
    Workload,
)

BASELINE = ServerConfig(
    engine="sglang", flags={"--tp-size": 8, "--mem-fraction-static": 0.92, "--max-running-requests": 2048}
)
EP8 = ConfigChange(
    set_flags={"--moe-a2a-backend": "flashinfer", "--moe-runner-backend": "flashinfer_cutlass"}
)


def remedy(target, direction, value=None):
    return Remedy(target=target, direction=direction, change="c", why="why", source="s", value=value)


def diagnosis(failure_class, *remedies):
    return Diagnosis(
        failure_class=failure_class,
        confidence=0.9,
        root_line="x",
        line_no=1,
        stage="serving",
        remedies=remedies,
        explanation="e",
    )


def view_of(change=EP8, baseline=BASELINE, engine=None):
    hypothesis = Hypothesis(
        id="H1",
        statement="s",
        reason="r",
        change=change,
        parent=baseline.id,
        refuted_by="x",
        source="playbook",
    )
    view = CampaignView(
        goal=Goal(),
        workload=Workload(),
        host=HostFacts(name="h", machine_id="m"),
        engine=engine or EngineFacts(engine=baseline.engine, version="0.5.9"),
        model=ModelFacts(path="m"),
        baseline=baseline,
        incumbent=baseline,
        hypotheses=(hypothesis,),
    )
    return launched(view, baseline.apply(change))


def launched(view, config):
    launch = Launch(
        id=f"L{len(view.launches) + 1}",
        hypothesis="H1",
        config=config,
        command="c",
        outcome=LaunchOutcome.DIED_SERVING,
    )
    return view.model_copy(update={"launches": (*view.launches, launch)})


def play(view, config, diagnoses):
    """The configurations of the series that the diagnoses lead to."""
    attempts, configs = [], [config]
    for found in diagnoses:
        step = next_pivot(configs[-1], found, attempts, view)
        if step is None:
            break
        attempts.append(
            Pivot(
                hypothesis="H1",
                attempt=len(attempts) + 1,
                remedy=step.remedy,
                config_before=configs[-1].id,
                config_after=step.config.id,
            )
        )
        configs.append(step.config)
        view = launched(view, step.config)
    return configs


def test_memory_that_runs_out_under_load_lowers_pool_and_batch_as_the_campaign_did():
    serve = diagnosis("oom.cuda.serve", remedy("--mem-fraction-static", "lower"))
    configs = play(view_of(), BASELINE.apply(EP8), [serve, serve])
    sizes = [(c.flags["--mem-fraction-static"], c.flags["--max-running-requests"]) for c in configs]
    assert sizes == [(0.92, 2048), (0.8, 1024), (0.75, 512)]
    assert all(c.flags["--moe-a2a-backend"] == "flashinfer" for c in configs)


def test_a_pool_that_is_too_small_at_start_raises_the_fraction():
    startup = diagnosis("oom.kv_pool.startup", remedy("--mem-fraction-static", "raise"))
    base = BASELINE.apply(ConfigChange(set_flags={"--mem-fraction-static": 0.7787}))
    configs = play(view_of(baseline=base), base.apply(EP8), [startup])
    assert configs[-1].flags["--mem-fraction-static"] == pytest.approx(0.829)


def test_the_exact_value_of_the_log_is_used_when_it_points_the_right_way():
    up = diagnosis("oom.kv_pool.startup", remedy("--mem-fraction-static", "raise", "0.93"))
    step = next_pivot(BASELINE.apply(EP8), up, [], view_of())
    assert step.config.flags["--mem-fraction-static"] == 0.93
    wrong = diagnosis("oom.kv_pool.startup", remedy("--mem-fraction-static", "raise", 0.5))
    step = next_pivot(BASELINE.apply(EP8), wrong, [], view_of())
    assert step.config.flags["--mem-fraction-static"] > 0.92


def test_an_exact_count_is_a_whole_number_as_the_command_line_wants_it():
    fewer = diagnosis("oom.cuda.serve", remedy("--max-running-requests", "lower", 512.0))
    step = next_pivot(BASELINE.apply(EP8), fewer, [], view_of())
    assert repr(step.config.flags["--max-running-requests"]) == "512"


def test_sandwiched_between_two_failures_another_knob_moves():
    serve = diagnosis("oom.cuda.serve", remedy("--mem-fraction-static", "lower"))
    startup = diagnosis("oom.kv_pool.startup", remedy("--mem-fraction-static", "raise"))
    configs = play(view_of(), BASELINE.apply(EP8), [serve, startup])
    assert configs[2].flags["--mem-fraction-static"] == configs[1].flags["--mem-fraction-static"]
    assert configs[2].flags["--cuda-graph-max-bs"] == 128


def test_graph_capture_lowers_the_largest_captured_batch_by_its_name_in_this_version():
    knobs = (
        Knob(name="--cuda-graph-max-bs-decode", kind="int", default=512),
        *(Knob(name=n, kind="str") for n in ("--tp-size", "--moe-a2a-backend", "--moe-runner-backend")),
    )
    engine = EngineFacts(engine="sglang", version="0.5.23", knobs=knobs)
    found = diagnosis("oom.graph_capture", remedy("--cuda-graph-max-bs", "lower"))
    step = next_pivot(BASELINE.apply(EP8), found, [], view_of(engine=engine))
    assert step.config.flags["--cuda-graph-max-bs-decode"] == 128
    assert "--cuda-graph-max-bs" not in step.config.flags


def test_what_no_configuration_can_mend_is_blocked():
    port = diagnosis("host.port_in_use", remedy("port", "action"), remedy("MODEL", "action"))
    assert next_pivot(BASELINE.apply(EP8), port, [], view_of()) is None


def test_the_series_never_goes_back_to_what_the_hypothesis_changed():
    found = diagnosis(
        "kernel.unsupported_arch",
        remedy("--moe-a2a-backend", "remove"),
        remedy("--moe-a2a-backend", "replace", "none; rm -rf /"),
    )
    step = next_pivot(BASELINE.apply(EP8), found, [], view_of())
    assert step is None or "--moe-a2a-backend" in step.config.flags
    raised = ConfigChange(set_flags={"--max-running-requests": 4096})
    low = diagnosis("oom.cuda.serve", remedy("--max-running-requests", "lower"))
    configs = play(view_of(change=raised), BASELINE.apply(raised), [low])
    assert configs[-1].flags["--max-running-requests"] != 2048


def test_what_the_user_pinned_stays():
    view = view_of()
    pinned = view.space.model_copy(update={"pin": ("--mem-fraction-static",)})
    serve = diagnosis("oom.cuda.serve", remedy("--mem-fraction-static", "lower"))
    step = next_pivot(BASELINE.apply(EP8), serve, [], view.model_copy(update={"space": pinned}))
    assert step.config.flags["--mem-fraction-static"] == 0.92
    assert step.config.flags["--max-running-requests"] == 1024


def test_an_unknown_configuration_in_the_series_blocks_it():
    lost = Pivot(hypothesis="H1", attempt=1, remedy="r", config_before="gone", config_after="lost")
    serve = diagnosis("oom.cuda.serve", remedy("--mem-fraction-static", "lower"))
    assert next_pivot(BASELINE.apply(EP8), serve, [lost], view_of()) is None


TARGETS = st.sampled_from(
    ["--mem-fraction-static", "--max-running-requests", "--cuda-graph-max-bs", "--chunked-prefill-size",
     "--tp-size", "--disable-cuda-graph", "--moe-runner-backend", "NCCL_P2P_DISABLE", "driver"]
)  # fmt: skip
REMEDIES = st.builds(
    remedy,
    TARGETS,
    st.sampled_from(["raise", "lower", "add", "remove", "replace", "action"]),
    st.one_of(st.none(), st.integers(0, 4096), st.floats(0, 1), st.sampled_from(["auto", "triton", "1"])),
)
DIAGNOSES = st.builds(
    lambda failure_class, remedies: diagnosis(failure_class, *remedies),
    st.sampled_from(["oom.cuda.serve", "oom.kv_pool.startup", "oom.graph_capture", "kernel.tile_smem"]),
    st.lists(REMEDIES, max_size=4),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(DIAGNOSES, min_size=1, max_size=8))
def test_no_series_loops(diagnoses):
    configs = play(view_of(), BASELINE.apply(EP8), diagnoses)
    assert len(configs) <= remedy_book().max_attempts + 1
    assert len({c.id for c in configs}) == len(configs)
    for flag in {f for c in configs for f in c.flags}:
        values = [c.flags[flag] for c in configs if flag in c.flags]
        if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
            assert values in (sorted(values), sorted(values, reverse=True))


def test_a_faulty_remedy_file_is_named():
    with pytest.raises(InputError, match="mine"):
        parse_remedies("max_attempts = 0\nknob = []", "mine")


def test_a_remedy_that_says_another_takes_the_next_word_of_the_data():
    found = diagnosis("kernel.unsupported_arch", remedy("--attention-backend", "replace"))
    change = ConfigChange(set_flags={"--enable-mscclpp": True})
    configs = play(view_of(change=change), BASELINE.apply(change), [found, found, found])
    assert [c.flags.get("--attention-backend") for c in configs] == [None, "triton", "flashinfer"]


def test_a_variable_is_set_to_what_the_data_knows_and_never_to_what_is_denied():
    found = diagnosis(
        "comm.p2p",
        remedy("LD_PRELOAD", "add", "/tmp/x.so"),
        remedy("NCCL_DEBUG", "add"),
        remedy("NCCL_P2P_DISABLE", "add"),
    )
    step = next_pivot(BASELINE.apply(EP8), found, [], view_of())
    assert step.config.env == {"NCCL_P2P_DISABLE": "1"}


def test_a_flag_that_needs_a_value_is_not_added_without_one():
    engine = EngineFacts(
        engine="sglang",
        version="0.5.9",
        knobs=(Knob(name="--chat-template", kind="str"), Knob(name="--tp-size", kind="int")),
    )
    found = diagnosis("model.tokenizer", remedy("--chat-template", "add"))
    change = ConfigChange(set_flags={"--tp-size": 4})
    assert next_pivot(BASELINE.apply(change), found, [], view_of(change=change, engine=engine)) is None


def test_context_is_not_cut_below_what_the_workload_needs():
    found = diagnosis("oom.kv_pool.startup", remedy("--context-length", "lower"))
    base = BASELINE.apply(ConfigChange(set_flags={"--context-length": 3000}))
    step = next_pivot(base.apply(EP8), found, [], view_of(baseline=base))
    assert step.config.flags["--context-length"] == 2064


def test_gpus_that_are_not_there_are_not_used():
    found = diagnosis("oom.weights", remedy("--tp-size", "raise"))
    assert next_pivot(BASELINE.apply(EP8), found, [], view_of()) is None
