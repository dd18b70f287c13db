"""Views of three campaigns, built from the facts of real machines, and a way to play a turn."""

from collections.abc import Callable

import pytest

from moeagent.agent.proposers.book import Book, parse_book
from moeagent.agent.proposers.protocol import Draft
from moeagent.agent.proposers.view import Budget, CampaignView
from moeagent.memory.records import (
    ClientHealth,
    Distribution,
    Effect,
    EngineFacts,
    Goal,
    Gpu,
    HostFacts,
    Knob,
    Launch,
    LaunchOutcome,
    ModelFacts,
    Rung,
    ServerConfig,
    Verdict,
    VerdictKind,
    Workload,
)

GLM5 = {
    "architectures": ["GlmMoeDsaForCausalLM"],
    "vocab_size": 154880,
    "q_lora_rank": 2048,
    "qk_nope_head_dim": 192,
    "qk_rope_head_dim": 64,
    "v_head_dim": 256,
    "index_n_heads": 32,
    "index_head_dim": 128,
    "index_topk": 2048,
    "n_shared_experts": 1,
    "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3,
    "intermediate_size": 12288,
    "num_hidden_layers": 78,
    "hidden_size": 6144,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "kv_lora_rank": 512,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "num_nextn_predict_layers": 1,
    "max_position_embeddings": 202752,
    "quantization_config": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"},
}
TINY = {"num_experts": 16, "num_experts_per_tok": 4, "num_hidden_layers": 4, "hidden_size": 256}
PCIE = "GPU0 GPU1\nGPU0 X NODE\nGPU1 NODE X"


def spread(ms: float) -> Distribution:
    return Distribution(mean=ms, p50=ms, p90=ms * 1.2, p95=ms * 1.3, p99=ms * 1.5)


def rung(concurrency: int, tok_s: float, *, tpot: float | None = None, ttft: float = 100.0) -> Rung:
    step = tpot if tpot is not None else concurrency / tok_s * 1000
    return Rung(
        concurrency=concurrency,
        completed=concurrency * 2,
        failed=0,
        duration_s=60.0,
        output_tok_s=tok_s,
        total_tok_s=tok_s * 2,
        ttft_ms=spread(ttft),
        tpot_ms=spread(step),
        itl_ms=spread(step),
        e2e_ms=spread(ttft + step * 100),
        client=ClientHealth(cpu_s=1.0, loop_lag_ms=1.0, valid=True),
    )


def launch_of(
    config: ServerConfig,
    rungs: tuple[Rung, ...],
    *,
    hypothesis: str | None = None,
    number: int = 1,
    **memory: float,
) -> Launch:
    return Launch(
        id=f"L{number}",
        hypothesis=hypothesis,
        config=config,
        command="server",
        outcome=LaunchOutcome.COMPLETED,
        memory=memory,
        rungs=rungs,
    )


@pytest.fixture
def sm120_view() -> CampaignView:
    """Eight RTX PRO 6000 with a large NVFP4 MoE under SGLang 0.5.9, baseline measured twice."""
    gpus = tuple(
        Gpu(
            index=i,
            name="NVIDIA RTX PRO 6000 Blackwell Server Edition",
            memory_mib=97887,
            compute_capability="12.0",
            power_limit_w=600,
        )
        for i in range(8)
    )
    baseline = ServerConfig(
        engine="sglang",
        flags={"--tp-size": 8, "--mem-fraction-static": 0.92, "--max-running-requests": 2048},
    )
    rungs = (
        rung(1, 52.6, ttft=300),
        rung(10, 283.0, ttft=500),
        rung(256, 1410.0, ttft=20000, tpot=160),
        rung(1024, 1600.0, ttft=90000, tpot=180),
    )
    launches = tuple(launch_of(baseline, rungs, number=n, kv_tokens=490880) for n in (1, 2))
    return CampaignView(
        goal=Goal(),
        workload=Workload(),
        host=HostFacts(name="gpu1", machine_id="m1", gpus=gpus, cpu_cores=96, topology=PCIE),
        engine=EngineFacts(engine="sglang", version="0.5.9"),
        model=ModelFacts(path="/models/GLM-5-NVFP4", config=GLM5, size_gib=400),
        baseline=baseline,
        incumbent=baseline,
        launches=launches,
        budget=Budget(experiments=10),
    )


@pytest.fixture
def llamacpp_view() -> CampaignView:
    """Two CPU cores with a tiny MoE under llama.cpp, from the baseline of one slot."""
    knobs = (
        Knob(name="--parallel", kind="int", aliases=("-np",), default=-1),
        Knob(name="--ctx-size", kind="int", aliases=("-c",), default=0),
        Knob(name="--batch-size", kind="int", aliases=("-b",), default=2048),
        Knob(name="--ubatch-size", kind="int", aliases=("-ub",), default=512),
        Knob(name="--threads", kind="int", aliases=("-t",), default=-1),
        Knob(name="--threads-batch", kind="int", aliases=("-tb",)),
        Knob(
            name="--flash-attn", kind="str", aliases=("-fa",), choices=("on", "off", "auto"), default="auto"
        ),
        Knob(name="--cache-type-k", kind="str", aliases=("-ctk",), choices=("f16", "q8_0"), default="f16"),
        Knob(name="--cache-type-v", kind="str", aliases=("-ctv",), choices=("f16", "q8_0"), default="f16"),
        Knob(name="--no-repack", kind="bool", aliases=("-nr",)),
        Knob(name="--cache-ram", kind="int", aliases=("-cram",), default=8192),
        Knob(name="--kv-unified", kind="bool", aliases=("-kvu",)),
    )
    baseline = ServerConfig(engine="llamacpp", flags={"-np": 1, "-c": 4096})
    rungs = (rung(1, 400, ttft=20), rung(8, 420, ttft=1500, tpot=2.4), rung(32, 430, ttft=9000, tpot=2.4))
    return CampaignView(
        goal=Goal(),
        workload=Workload(input_len=64, output_len=128, ladder=(1, 8, 32)),
        host=HostFacts(name="local", machine_id="m2", cpu_cores=2, ram_gib=8),
        engine=EngineFacts(engine="llamacpp", version="b9000", knobs=knobs),
        model=ModelFacts(path="tiny-moe.gguf", config=TINY, size_gib=0.05),
        baseline=baseline,
        incumbent=baseline,
        launches=(launch_of(baseline, rungs), launch_of(baseline, rungs, number=2)),
        budget=Budget(experiments=8),
    )


@pytest.fixture
def h200_view() -> CampaignView:
    """One H200 with a 30B MoE under vLLM, from an eager baseline."""
    baseline = ServerConfig(engine="vllm", flags={"--max-num-seqs": 256, "--enforce-eager": True})
    rungs = (rung(1, 21, ttft=60), rung(32, 561, ttft=100), rung(256, 3615, ttft=400))
    return CampaignView(
        goal=Goal(),
        workload=Workload(input_len=128, output_len=128, ladder=(1, 32, 256)),
        host=HostFacts(
            name="h200",
            machine_id="m3",
            gpus=(Gpu(index=0, name="NVIDIA H200", memory_mib=143771, compute_capability="9.0"),),
            cpu_cores=16,
        ),
        engine=EngineFacts(engine="vllm", version="0.25.1"),
        model=ModelFacts(
            path="qwen3-30b",
            config={
                "num_experts": 128,
                "num_experts_per_tok": 8,
                "num_hidden_layers": 48,
                "hidden_size": 2048,
            },
            size_gib=57,
        ),
        baseline=baseline,
        incumbent=baseline,
        launches=(launch_of(baseline, rungs, kv_tokens=744688),),
    )


PlayTurn = Callable[[CampaignView, Draft, float, VerdictKind], CampaignView]


@pytest.fixture
def play() -> PlayTurn:
    """Adds a draft with its launch and verdict to the view; an improvement becomes the incumbent."""

    def turn(view: CampaignView, draft: Draft, effect: float, kind: VerdictKind) -> CampaignView:
        number = len(view.hypotheses) + 1
        hypothesis = draft.numbered(f"H{number}")
        parent = view.config(draft.parent)
        assert parent is not None
        child = parent.apply(draft.change)
        rungs = tuple(
            rung(r.concurrency, (r.output_tok_s or 0) * (1 + effect)) for r in view.rungs_of(view.incumbent)
        )
        dead = kind is VerdictKind.BLOCKED
        measured = (
            None
            if dead
            else Effect(
                concurrency=None, effect=effect, low=effect - 0.01, high=effect + 0.01, launches=(2, 2)
            )
        )
        verdict = Verdict(hypothesis=hypothesis.id, kind=kind, goal_effect=measured, reason="played")
        launch = launch_of(
            child, () if dead else rungs, hypothesis=hypothesis.id, number=len(view.launches) + 1
        )
        return view.model_copy(
            update={
                "hypotheses": (*view.hypotheses, hypothesis),
                "verdicts": (*view.verdicts, verdict),
                "launches": (*view.launches, launch),
                "incumbent": child if kind is VerdictKind.IMPROVED else view.incumbent,
            }
        )

    return turn


@pytest.fixture
def two_levers() -> Book:
    """A book of two levers that go together, a risky one, and one that excludes the first."""

    def lever(name: str, flag: str, low: float, risk: float = 0.02, when: str = "True") -> str:
        return (
            f'[[move]]\nid = "{name}"\nstatement = "{name}"\nwhy = "w"\nsource = "s"\ncategory = "{name}"\n'
            f'when = "{when}"\nset = {{ "{flag}" = 1 }}\nrisk = {risk}\n'
            f"effect = [{{ at = 1, low = {low}, high = 0.1 }}]\n"
        )

    return parse_book(
        'engine = "sglang"\n'
        + lever("sure", "--sure", 0.04)
        + lever("also", "--also", 0.02)
        + lever("risky", "--risky", 0.06, risk=0.4)
        + lever("only-first", "--only", 0.03, when="not has('--sure')"),
        "levers",
    )
