"""The virtual-time face: determinism, noise, logs, and agreement with the step-by-step scheduler."""

import random
import re
import statistics
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moeagent.memory.records import FlagValue, LaunchOutcome, ServerConfig, Workload
from moeagent.tools.sim.catalogue import parse
from moeagent.tools.sim.families import draw_worlds
from moeagent.tools.sim.machines import GLM, Instance, argv, campaign_world, instance, parsed
from moeagent.tools.sim.scheduler import OutOfMemoryError, Request, Scheduler
from moeagent.tools.sim.space import with_choice
from moeagent.tools.sim.startup import never_starts
from moeagent.tools.sim.virtual import VirtualMachine

SHORT = Workload(input_len=64, output_len=64, ladder=(1, 10, 64))


def quiet(key: str = "A", seed: int = 0, **flags: FlagValue) -> Instance:
    world = campaign_world(key, seed)
    world = replace(world, hidden=replace(world.hidden, noise_within=0.0, noise_between=0.0))
    changes = {"--" + name.replace("_", "-"): value for name, value in flags.items()}
    config = GLM.baseline.model_copy(update={"flags": {**GLM.baseline.flags, **changes}})
    return instance(world, config)


def stepped(made: Instance, concurrency: int, workload: Workload) -> float:
    """Output tokens/s of a closed loop on the step-by-step scheduler."""
    scheduler = Scheduler(made, random.Random(0))
    left = workload.prompts(concurrency)
    for _ in range(min(concurrency, left)):
        scheduler.add(Request(workload.input_len, 0, workload.output_len))
        left -= 1
    now, tokens = 0.0, 0
    while step := scheduler.step():
        now += step.duration
        tokens += sum(count for _, count in step.yields)
        for _ in step.finished:
            if left:
                scheduler.add(Request(workload.input_len, 0, workload.output_len))
                left -= 1
    assert tokens == workload.prompts(concurrency) * workload.output_len
    return tokens / now


def drain(scheduler: Scheduler) -> None:
    while scheduler.step():
        pass


@pytest.mark.parametrize(
    ("shape", "concurrency"),
    [((1024, 256), 1), ((512, 128), 10), ((512, 128), 64), ((128, 128), 256), ((1024, 256), 512)],
)
def test_the_two_faces_agree(shape: tuple[int, int], concurrency: int) -> None:
    workload = Workload(input_len=shape[0], output_len=shape[1], ladder=(concurrency,))
    made = quiet()
    closed = made.at(concurrency, workload).output_tok_s
    assert stepped(made, concurrency, workload) == pytest.approx(closed, rel=0.05)


def test_the_baseline_of_the_campaign_is_about_1600_tokens_a_second_step_by_step() -> None:
    assert stepped(quiet(), 1024, GLM.workload) == pytest.approx(1600, rel=0.03)


def test_a_full_pool_queues_and_retracts_in_both_faces() -> None:
    made = quiet(mem_fraction_static=0.78)
    workload = Workload(input_len=1024, output_len=512, ladder=(256,), prompts_per_slot=1.5)
    closed = made.at(256, workload)
    assert closed.running < 256
    assert stepped(made, 256, workload) == pytest.approx(closed.output_tok_s, rel=0.12)


def test_the_scheduler_dies_when_the_batch_does_not_fit() -> None:
    scheduler = Scheduler(quiet(mem_fraction_static=0.94), random.Random(0))
    for _ in range(256):
        scheduler.add(Request(32, 0, 64))
    with pytest.raises(OutOfMemoryError):
        drain(scheduler)


@given(st.lists(st.tuples(st.integers(1, 9000), st.integers(1, 80)), min_size=1, max_size=60))
@settings(max_examples=30, deadline=None)
def test_every_request_gets_exactly_its_tokens(requests: list[tuple[int, int]]) -> None:
    scheduler = Scheduler(quiet(), random.Random(0))
    made = [Request(before, 0, after) for before, after in requests]
    for request in made:
        scheduler.add(request)
    got: dict[int, int] = {}
    while step := scheduler.step():
        assert step.duration > 0
        for request, tokens in step.yields:
            got[id(request)] = got.get(id(request), 0) + tokens
    assert [got[id(request)] for request in made] == [after for _, after in requests]
    assert not scheduler.running
    assert not scheduler.waiting


def test_equal_nonces_give_equal_outcomes_and_others_do_not() -> None:
    machine = VirtualMachine(campaign_world("A", 0))
    one, two = (machine.launch(GLM.baseline, SHORT, 5) for _ in range(2))
    assert (one.rungs, one.log, one.cost_s) == (two.rungs, two.log, two.cost_s)
    assert machine.launch(GLM.baseline, SHORT, 6).rungs != one.rungs


def test_noise_between_launches_is_that_of_the_world() -> None:
    world = campaign_world("A", 0)
    machine = VirtualMachine(world)
    rates = [machine.launch(GLM.baseline, SHORT, nonce).rungs[-1].output_tok_s or 0.0 for nonce in range(400)]
    expected = (world.hidden.noise_within**2 + world.hidden.noise_between**2) ** 0.5
    assert statistics.stdev(rates) / statistics.mean(rates) == pytest.approx(expected, rel=0.15)


def test_flags_parsed_one_by_one_are_those_of_the_whole_command_line() -> None:
    rng = random.Random(4)
    for world in draw_worlds(6):
        config = world.baseline
        for knob in rng.sample(world.space(), 8):
            config = with_choice(config, knob.name, rng.choice(knob.choices))
        assert parsed(config) == parse(argv(config))


def test_a_refused_command_line_costs_seconds_and_has_its_message() -> None:
    config = ServerConfig(engine="sglang", flags={"--tp-sizes": 8})
    outcome = VirtualMachine(campaign_world("A", 0)).launch(config, SHORT, 1)
    assert outcome.outcome is LaunchOutcome.REFUSED
    assert outcome.exit_code == 2
    assert "unrecognized arguments: --tp-sizes 8" in outcome.log


def test_a_healthy_log_has_the_engines_lines_in_order() -> None:
    log = VirtualMachine(campaign_world("A", 0)).launch(GLM.baseline, SHORT, 1).log
    wanted = (
        r"moeagent simulated machine: world=", r"server_args=ServerArgs\(",
        r"TP\d\] Init torch distributed begin\.",
        r"Load weight begin\. avail mem=93\.63 GB", r"Loading safetensors checkpoint shards: 100% Completed",
        r"Load weight end\. elapsed=[\d.]+ s, type=GlmMoeDsaForCausalLM, .* mem usage=60\.89 GB\.",
        r"KV Cache is allocated\. #tokens: 490880, KV size: 25\.25 GB", r"Memory pool end\. avail mem=",
        r"Capture cuda graph begin\.", r"Capture cuda graph bs \[1, 2, 4,", r"Capturing batches \(bs=512",
        r"Capture cuda graph end\. Time elapsed: ",
        r"max_total_num_tokens=490880, chunked_prefill_size=8192,",
        r"Uvicorn running on http://", r"The server is fired up and ready to roll!",
        r"Decode batch, #running-req: 1,",
    )  # fmt: skip
    position = 0
    for pattern in wanted:
        found = re.compile(pattern).search(log, position)
        assert found, pattern
        position = found.end()


def test_never_starts_agrees_with_the_start_up() -> None:
    rng = random.Random(3)
    seen = set()
    for world in draw_worlds(8):
        for _ in range(25):
            config = world.baseline
            for knob in rng.sample(world.space(), 2):
                config = with_choice(config, knob.name, rng.choice(knob.choices))
            made = instance(world.world, config)
            outcome = world.launch(config, world.workload, 1)
            assert never_starts(world.world, made.settings, made.plan) == (outcome.ready_after_s is None), (
                config
            )
            seen.add(outcome.outcome)
    assert {LaunchOutcome.COMPLETED, LaunchOutcome.DIED_STARTING} <= seen
