"""What is refused before launch, and what is only told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moeagent.memory.records import EngineFacts, Gpu, HostFacts, ServerConfig
from moeagent.tools.engines.couplings import Situation
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.engines.registry import engine_by_name
from moeagent.tools.engines.validate import Problem, canonical, validate_config


def facts(engine: str, version: str) -> EngineFacts:
    return engine_by_name(engine).facts({}, EngineInstall(version=version))


SGLANG, SGLANG_NEW, VLLM = facts("sglang", "0.5.9"), facts("sglang", "0.5.23"), facts("vllm", "0.33.0")
LLAMACPP = facts("llamacpp", "2026.10")
SM120 = HostFacts(
    name="gpu1",
    machine_id="x",
    gpus=tuple(
        Gpu(index=i, name="RTX PRO 6000", memory_mib=97887, compute_capability="12.0") for i in range(8)
    ),
)


def problems(known: EngineFacts, flags: dict, env: dict | None = None, **more: object) -> tuple[Problem, ...]:
    return validate_config(ServerConfig(engine=known.engine, flags=flags, env=env or {}), known, **more)  # type: ignore[arg-type]


def only(found: tuple[Problem, ...]) -> Problem:
    assert len(found) == 1, found
    return found[0]


def test_the_campaigns_own_configurations_pass() -> None:
    baseline = {"--tp-size": 8, "--mem-fraction-static": 0.92, "--max-running-requests": 2048}
    ep8 = {**baseline, "--moe-a2a-backend": "flashinfer", "--moe-runner-backend": "flashinfer_cutlass"}
    for flags in (
        baseline,
        ep8,
        {**baseline, "--enable-mscclpp": True, "--enable-single-batch-overlap": True},
    ):
        assert problems(SGLANG, flags, {"NCCL_MIN_NCHANNELS": "8"}, host=SM120) == ()
    assert problems(LLAMACPP, {"-np": 4, "-c": 4096, "-fa": "on", "-ctv": "q8_0"}) == ()
    assert problems(VLLM, {"-tp": 8, "--max-num-seqs": 256, "--no-enable-prefix-caching": True}) == ()


def test_an_unknown_flag_names_the_nearest() -> None:
    found = only(problems(SGLANG, {"--mem-fractoin-static": 0.9}))
    assert (found.kind, found.fatal, found.suggestion) == ("unknown", True, "--mem-fraction-static")
    assert "did you mean --mem-fraction-static?" in found.message


@pytest.mark.parametrize(
    ("known", "flag", "kind", "suggestion"),
    [
        (SGLANG_NEW, "--cuda-graph-max-bs", "ambiguous", "--cuda-graph-max-bs-decode"),
        (SGLANG_NEW, "--stream-output", "renamed", "--incremental-streaming-output"),
        (SGLANG, "--pp", "ambiguous", None),
        (SGLANG, "--tp", "abbreviated", "--tp-size"),
        (VLLM, "--swap-space", "renamed", "--kv-offloading-size"),
        (LLAMACPP, "--ubatch", "unknown", "--ubatch-size"),
        (SGLANG, "--delete-ckpt", "denied", None),
        (VLLM, "--api_key", "denied", None),
    ],
)
def test_names_that_are_refused(known: EngineFacts, flag: str, kind: str, suggestion: str | None) -> None:
    found = only(problems(known, {flag: 1}))
    assert (found.kind, found.fatal, found.suggestion) == (kind, True, suggestion)


def test_a_flag_of_another_version_says_which() -> None:
    found = only(problems(SGLANG, {"--cuda-graph-max-bs-decode": 3}))
    assert "0.5.23 has it" in found.message


@pytest.mark.parametrize(
    ("known", "flags", "kind"),
    [
        (SGLANG, {"--schedule-policy": "fcsf"}, "choice"),
        (SGLANG, {"--max-running-requests": "many"}, "value"),
        (SGLANG, {"--max-running-requests": 1.5e3}, None),
        (SGLANG, {"--context-length": "8k"}, None),
        (SGLANG, {"--mem-fraction-static": "high"}, "value"),
        (SGLANG, {"--disable-radix-cache": 1}, "value"),
        (SGLANG, {"--max-running-requests": True}, "value"),
        (SGLANG, {"--cuda-graph-bs": "1 2 x"}, "value"),
        (SGLANG, {"--cuda-graph-bs": "1 2 4"}, None),
        (VLLM, {"--compilation-config": "{'mode': 3}"}, "value"),
        (VLLM, {"--compilation-config": '{"mode": 3}'}, None),
        (VLLM, {"--compilation-config.mode": 3}, None),
        (VLLM, {"--no-enable-prefix-caching": "false"}, "value"),
        (LLAMACPP, {"--flash-attn": "yes"}, "choice"),
        (LLAMACPP, {"--n-gpu-layers": "all"}, None),
    ],
)
def test_values(known: EngineFacts, flags: dict, kind: str | None) -> None:
    found = problems(known, flags)
    assert [p.kind for p in found if p.fatal] == ([] if kind is None else [kind])


def test_deprecated_and_unread_flags_are_told_but_not_refused() -> None:
    unread = only(problems(SGLANG, {"--num-continuous-decode-steps": 4}))
    assert (unread.kind, unread.fatal) == ("unread", False)
    old = problems(SGLANG_NEW, {"--enable-dp-attention": True, "--dp-size": 8, "--tp-size": 8})
    assert [(p.kind, p.fatal, p.suggestion) for p in old] == [("deprecated", False, "--attn-dp-size N")]


@pytest.mark.parametrize(
    ("env", "fatal"),
    [
        ({"NCCL_P2P_LEVEL": "SYS"}, False),
        ({"NCCL_P2P_LEVEL": "FAR"}, True),
        ({"NCCL_MIN_CHANNELS": "8"}, True),
        ({"SGLANG_ENABLE_JIT_DEEPGEMM": "0"}, False),
        ({"SGLANG_ENABLE_JIT_DEEPGEMM": "maybe"}, True),
        ({"LD_PRELOAD": "/tmp/x.so"}, True),
        ({"VLLM_USE_DEEP_GEMM": "0"}, True),
    ],
)
def test_environment_variables(env: dict, fatal: bool) -> None:
    assert any(p.fatal for p in problems(SGLANG, {}, env)) is fatal


def test_a_variable_that_the_user_set_himself_passes_but_a_dangerous_one_does_not() -> None:
    assert problems(SGLANG, {}, {"MY_SITE": "1"}, trusted_env=("MY_SITE",)) == ()
    assert only(problems(SGLANG, {}, {"LD_PRELOAD": "x"}, trusted_env=("LD_PRELOAD",))).kind == "denied"


@pytest.mark.parametrize(
    ("known", "flags", "fatal", "part"),
    [
        (SGLANG, {"--moe-a2a-backend": "flashinfer"}, True, "flashinfer_cutlass only"),
        (SGLANG_NEW, {"--moe-a2a-backend": "flashinfer", "--tp-size": 8}, True, "data-parallel attention"),
        (SGLANG, {"--tp-size": 8, "--ep-size": 3}, True, "divide"),
        (
            SGLANG,
            {"--speculative-algorithm": "EAGLE3", "--max-running-requests": 8},
            True,
            "draft-model-path",
        ),
        (SGLANG, {"--enable-torch-symm-mem": True}, True, "KeyError"),
        (SGLANG, {"--attention-backend": "fa3"}, True, "SM80"),
        (SGLANG, {"--tp-size": 16}, True, "fewer GPUs"),
        (SGLANG, {"--chunked-prefill-size": 1000, "--page-size": 64}, True, "multiple"),
        (SGLANG, {"--enable-two-batch-overlap": True}, True, "all-to-all"),
        (SGLANG, {"--enable-mscclpp": True, "--tp-size": 4}, False, "switches itself off"),
        (SGLANG, {"--cuda-graph-max-bs": 256, "--max-running-requests": 512}, False, "without graphs"),
        (SGLANG, {"--speculative-num-steps": 3}, False, "nothing without"),
        (VLLM, {"--enable-eplb": True}, True, "expert-parallel"),
        (VLLM, {"--max-num-batched-tokens": 64, "--max-num-seqs": 128}, True, "at least"),
        (VLLM, {"--gpu-memory-utilization": 1.2}, True, "between 0 and 1"),
        (LLAMACPP, {"--cache-type-v": "q8_0", "--flash-attn": "off"}, True, "flash attention"),
        (LLAMACPP, {"--batch-size": 256, "--ubatch-size": 512}, False, "cut"),
    ],
)
def test_couplings(known: EngineFacts, flags: dict, fatal: bool, part: str) -> None:
    found = problems(known, flags, host=SM120)
    spoken = [p for p in found if p.kind == "coupling" and part in p.message]
    assert [p.fatal for p in spoken] == [fatal], found


GLM = {
    "model.architecture": "GlmMoeDsaForCausalLM", "model.weights": "nvfp4", "model.attention": "mla",
    "model.cache": "sparse", "model.experts": 256, "model.quant_method": "modelopt_fp4",
}  # fmt: skip
QWEN = {
    "model.architecture": "Qwen3MoeForCausalLM", "model.weights": "bfloat16", "model.attention": "mha",
    "model.cache": "plain", "model.experts": 128, "model.quant_method": "",
}  # fmt: skip
GPT_OSS = {
    **QWEN, "model.architecture": "GptOssForCausalLM", "model.weights": "mxfp4", "model.cache": "window",
}  # fmt: skip
H200 = SM120.model_copy(
    update={"gpus": tuple(gpu.model_copy(update={"compute_capability": "9.0"}) for gpu in SM120.gpus)}
)
EAGLE = {"--speculative-algorithm": "EAGLE", "--max-running-requests": 8}
KV4 = {"--kv-cache-dtype": "fp4_e2m1"}


@pytest.mark.parametrize(
    ("flags", "host", "model", "part"),
    [
        (EAGLE, SM120, QWEN, "no prediction layer of its own"),
        (EAGLE, SM120, GLM, None),
        ({**EAGLE, "--speculative-draft-model-path": "/d"}, SM120, QWEN, None),
        (KV4, H200, QWEN, "attention backend triton"),
        ({**KV4, "--attention-backend": "triton"}, H200, QWEN, None),
        ({**KV4, "--attention-backend": "triton"}, SM120, GPT_OSS, "no pool"),
        (KV4, SM120, GLM, "sparse attention"),
        ({"--moe-runner-backend": "flashinfer_cutlass"}, SM120, GPT_OSS, "16-bit experts"),
        ({"--moe-runner-backend": "flashinfer_cutlass"}, SM120, QWEN, None),
        ({"--moe-runner-backend": "deep_gemm"}, SM120, QWEN, "DeepGEMM"),
        ({"--moe-runner-backend": "deep_gemm"}, H200, QWEN, None),
        ({"--enable-piecewise-cuda-graph": True}, SM120, GLM, "FP4 JIT"),
        ({"--enable-piecewise-cuda-graph": True}, SM120, QWEN, None),
        ({"--tp-size": 8}, H200, GLM, "Blackwell"),
        ({"--quantization": "awq"}, SM120, GLM, "quantised otherwise (modelopt)"),
        ({"--quantization": "modelopt_fp4"}, SM120, GLM, None),
        ({"--quantization": "fp8"}, SM120, QWEN, None),
        ({"--moe-a2a-backend": "deepep"}, SM120, QWEN, "NVSHMEM"),
    ],
)
def test_rules_about_model_and_gpu(flags: dict, host: HostFacts, model: dict, part: str | None) -> None:
    found = [p.message for p in problems(SGLANG, flags, host=host, model=model) if p.fatal]
    assert [part in message for message in found] == ([] if part is None else [True]), found


def test_vllm_too_takes_the_checkpoints_own_quantisation() -> None:
    awq = {"model.quant_method": "awq"}
    assert "quantised otherwise (awq)" in only(problems(VLLM, {"--quantization": "gptq"}, model=awq)).message
    assert problems(VLLM, {"--quantization": "awq_marlin"}, model=awq) == ()


def test_a_runner_that_the_weights_do_not_know_is_told() -> None:
    found = only(problems(SGLANG, {"--moe-runner-backend": "triton"}, host=SM120, model=GLM))
    assert (found.fatal, "CUTLASS path" in found.message) == (False, True)


def test_what_the_engine_chooses_by_itself_counts_as_in_force() -> None:
    chosen = [
        Situation(ServerConfig(engine="sglang"), SGLANG, host, model).value("--attention-backend")
        for host, model in ((SM120, QWEN), (H200, QWEN), (SM120, GLM), (SM120, GPT_OSS), (None, {}))
    ]
    assert chosen == ["flashinfer", "fa3", "nsa", "triton", None]


def test_speculative_flags_come_together() -> None:
    spec = {"--speculative-algorithm": "EAGLE", "--max-running-requests": 8}
    alone = problems(SGLANG, {**spec, "--speculative-eagle-topk": 1})
    assert [p.fatal for p in alone if "come together" in p.message] == [True]
    whole = {
        "--speculative-num-steps": 3,
        "--speculative-eagle-topk": 1,
        "--speculative-num-draft-tokens": 4,
    }
    assert problems(SGLANG, {**spec, **whole}) == ()
    wrong = only(problems(SGLANG, {**spec, **whole, "--speculative-num-draft-tokens": 8}))
    assert (wrong.fatal, "num-steps + 1" in wrong.message) == (False, True)


def test_what_is_not_known_breaks_no_rule() -> None:
    assert problems(SGLANG, {"--enable-torch-symm-mem": True, "--tp-size": 16}) == ()


def test_canonical_names() -> None:
    written = ServerConfig(engine="sglang", flags={"--tp": 8, "--context-length": 4096, "--nonsense": 1})
    assert canonical(written, SGLANG).flags == {"--tp-size": 8, "--context-length": 4096, "--nonsense": 1}
    short = ServerConfig(engine="llamacpp", flags={"-np": 4, "-n": 16})
    assert canonical(short, LLAMACPP).flags == {"--parallel": 4, "--n-predict": 16}


@given(
    flags=st.dictionaries(
        st.from_regex(r"--?[a-z][a-z-]{0,20}", fullmatch=True),
        st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=20)),
        max_size=5,
    )
)
def test_any_configuration_gets_an_answer(flags: dict) -> None:
    for known in (SGLANG, VLLM, LLAMACPP):
        found = problems(known, flags, host=SM120)
        assert all(p.message and p.knob for p in found)
        assert [p.fatal for p in found] == sorted((p.fatal for p in found), reverse=True)
