"""Every row of the campaign, for several seeds, in virtual time."""

import pytest

from moeagent.memory.records import FlagValue, LaunchOutcome, ServerConfig, Workload
from moeagent.tools.sim.machines import (
    CAMPAIGNS,
    EP8_FLAGS,
    GLM,
    KIMI,
    KIMI_EAGLE3,
    Instance,
    campaign_world,
    instance,
)
from moeagent.tools.sim.virtual import VirtualMachine, VirtualOutcome

SEEDS = range(8)
SAFE: dict[str, FlagValue] = {**EP8_FLAGS, "--mem-fraction-static": 0.75, "--max-running-requests": 512}


def changed(key: str, flags: dict[str, FlagValue], env: dict[str, str] | None = None) -> ServerConfig:
    baseline = CAMPAIGNS[key].baseline
    return baseline.model_copy(update={"flags": {**baseline.flags, **flags}, "env": env or {}})


def made(key: str, seed: int, flags: dict[str, FlagValue], env: dict[str, str] | None = None) -> Instance:
    return instance(campaign_world(key, seed), changed(key, flags, env))


def rate(made_: Instance, concurrency: int, workload: Workload = GLM.workload) -> float:
    return made_.at(concurrency, workload).output_tok_s


def effect(
    seed: int, flags: dict[str, FlagValue], concurrency: int, env: dict[str, str] | None = None
) -> float:
    return rate(made("A", seed, flags, env), concurrency) / rate(made("A", seed, {}), concurrency) - 1.0


def launched(key: str, seed: int, flags: dict[str, FlagValue]) -> VirtualOutcome:
    return VirtualMachine(campaign_world(key, seed)).launch(changed(key, flags), CAMPAIGNS[key].workload, 1)


@pytest.mark.parametrize("seed", SEEDS)
class TestModelA:
    def test_baseline(self, seed: int) -> None:
        baseline = made("A", seed, {})
        assert rate(baseline, 1024) == pytest.approx(1603, rel=0.01)
        assert round(baseline.plan.weights, 2) == 60.89
        assert baseline.plan.kv_tokens == 490880
        assert baseline.plan.breaks_at() is None

    def test_mscclpp_and_single_batch_overlap_bring_about_nothing(self, seed: int) -> None:
        for concurrency in (1, 10, 256, 1024):
            assert 0.0 <= effect(seed, {"--enable-mscclpp": True}, concurrency) <= 0.02
            assert effect(seed, {"--enable-single-batch-overlap": True}, concurrency) == 0.0

    def test_piecewise_graphs_are_blocked_by_the_fp4_jit(self, seed: int) -> None:
        outcome = launched("A", seed, {"--enable-piecewise-cuda-graph": True})
        assert outcome.outcome is LaunchOutcome.DIED_STARTING
        assert "torch._dynamo.exc.Unsupported" in outcome.log
        assert "fullgraph=True" in outcome.log

    def test_ep8_is_slower_at_1_and_10_and_dies_at_256(self, seed: int) -> None:
        flags = dict(EP8_FLAGS)
        ep8 = made("A", seed, flags)
        assert round(ep8.plan.weights, 2) == 59.50
        assert ep8.plan.kv_tokens == 517632
        for concurrency in (1, 10):
            assert -0.14 <= effect(seed, flags, concurrency) <= -0.10
        outcome = launched("A", seed, flags)
        assert outcome.died_at == 256
        assert outcome.exit_code == 137
        assert (
            "expert parallel size is adjusted to be the same as the tensor parallel size[8]." in outcome.log
        )
        breaks = ep8.plan.breaks_at()
        assert breaks is not None
        assert 68 < breaks < 200

    def test_the_cause_of_the_death_stands_far_above_a_tail_of_frames(self, seed: int) -> None:
        lines = launched("A", seed, dict(EP8_FLAGS)).log.rstrip("\n").split("\n")
        assert all("sglang::scheduler_TP0_EP0(" in line for line in lines[-40:])
        cause = [number for number, line in enumerate(lines) if "torch.OutOfMemoryError" in line]
        assert cause[0] < len(lines) - 60
        assert "85.88 GiB is allocated by PyTorch" in lines[cause[0]]

    def test_memory_safe_ep8_loads_with_tile_noise(self, seed: int) -> None:
        outcome = launched("A", seed, SAFE)
        assert outcome.outcome is LaunchOutcome.COMPLETED
        assert "Failed to initialize cutlass TMA WS grouped gemm. Error: Error Internal" in outcome.log
        assert "The server is fired up and ready to roll!" in outcome.log

    def test_a_larger_pool_dies_under_load(self, seed: int) -> None:
        outcome = launched("A", seed, {"--mem-fraction-static": 0.94})
        assert outcome.outcome is LaunchOutcome.DIED_SERVING

    def test_tuned_nccl_is_a_real_gain_at_high_concurrency(self, seed: int) -> None:
        env = {"NCCL_MIN_NCHANNELS": "8"}
        assert 0.10 <= effect(seed, {}, 256, env) <= 0.19
        assert 0.10 <= effect(seed, {}, 1024, env) <= 0.19
        assert 0.0 <= effect(seed, {}, 1, env) <= 0.05

    def test_continuous_decode_steps_do_nothing(self, seed: int) -> None:
        assert effect(seed, {"--num-continuous-decode-steps": 8}, 256) == 0.0


@pytest.mark.parametrize("seed", SEEDS)
class TestModelB:
    def test_eagle3_loses_at_a_single_stream(self, seed: int) -> None:
        assert rate(made("B", seed, {}), 1, KIMI.workload) == pytest.approx(89.5, rel=0.005)
        drafted = made("B", seed, dict(KIMI_EAGLE3))
        assert rate(drafted, 1, KIMI.workload) == pytest.approx(54.1, rel=0.01)

    def test_eagle3_without_a_larger_pool_is_refused(self, seed: int) -> None:
        assert "Not enough memory" in launched("B", seed, {"--speculative-algorithm": "EAGLE3"}).log

    @pytest.mark.parametrize(
        "flags",
        [
            {"--enable-flashinfer-allreduce-fusion": True},
            {"--disable-custom-all-reduce": True},
            {"--enable-mscclpp": True},
        ],
    )
    def test_communication_flags_bring_nothing(self, seed: int, flags: dict[str, FlagValue]) -> None:
        gain = rate(made("B", seed, flags), 1, KIMI.workload) / rate(made("B", seed, {}), 1, KIMI.workload)
        assert 1.0 <= gain <= 1.02

    def test_torch_symmetric_memory_fails(self, seed: int) -> None:
        outcome = launched("B", seed, {"--enable-torch-symm-mem": True})
        assert "KeyError: 12" in outcome.log
        assert outcome.outcome is LaunchOutcome.DIED_STARTING

    def test_expert_parallelism_is_refused_on_several_ranks(self, seed: int) -> None:
        outcome = launched("B", seed, dict(EP8_FLAGS))
        message = "Not enough memory. Please try to increase --mem-fraction-static. Current value: "
        message += "self.server_args.mem_fraction_static=0.778734296875"
        assert outcome.log.count(message) >= 3
        assert "TP1 EP1] Scheduler hit an exception" in outcome.log
        plan = made("B", seed, dict(EP8_FLAGS)).plan
        assert plan.after_load == pytest.approx(16.3, abs=0.05)
        assert made("B", seed, {}).plan.after_load == pytest.approx(21.7, abs=0.05)

    def test_the_refusal_leaves_only_logging_noise_in_the_tail_and_waits(self, seed: int) -> None:
        outcome = launched("B", seed, dict(EP8_FLAGS))
        noise = (
            "Ignore",
            "Logging",
            "handleError",
            "stderr",
            "launch_phase",
            "Message",
            "reentrant",
            "stream.write",
        )
        tail = outcome.log.rstrip("\n").split("\n")[-24:]
        assert not any("Not enough memory" in line for line in tail)
        assert sum(any(word in line for word in noise) for line in tail) > 10
        assert outcome.cost_s > 600

    def test_raising_the_fraction_leads_to_an_assertion_in_the_forward_pass(self, seed: int) -> None:
        outcome = launched("B", seed, {**EP8_FLAGS, "--mem-fraction-static": 0.88})
        assert outcome.outcome is LaunchOutcome.DIED_STARTING
        assert "\nAssertionError\n" in outcome.log
        assert "in forward\n" in outcome.log
