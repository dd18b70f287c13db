"""From a configuration to a launch command."""

import pytest

from moeagent.memory.errors import InputError
from moeagent.memory.records import ServerConfig
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.engines.registry import default_install, engine_by_name

DEFAULT = EngineInstall()


def argv(engine: str, flags: dict, install: EngineInstall = DEFAULT) -> list[str]:
    config = ServerConfig(engine=engine, flags=flags)
    command = engine_by_name(engine).command(config, model="/models/m", port=30001, install=install)
    return [str(part) for part in command.argv]


def test_sglang() -> None:
    assert argv("sglang", {"--tp-size": 8, "--disable-radix-cache": True, "--mem-fraction-static": 0.92}) == [
        "python3", "-m", "sglang.launch_server", "--model-path", "/models/m", "--host", "127.0.0.1",
        "--port", "30001", "--disable-radix-cache", "--mem-fraction-static", "0.92", "--tp-size", "8",
    ]  # fmt: skip


def test_vllm_takes_json_as_one_argument() -> None:
    config = '{"mode": 3, "cudagraph_mode": "FULL"}'
    assert argv("vllm", {"--compilation-config": config})[-2:] == ["--compilation-config", config]
    assert argv("vllm", {})[:3] == ["vllm", "serve", "/models/m"]


def test_llamacpp() -> None:
    assert argv("llamacpp", {"-np": 4}) == [
        "llama-server", "-m", "/models/m", "--host", "127.0.0.1", "--port", "30001", "-np", "4",
    ]  # fmt: skip


def test_a_list_becomes_several_words_and_a_negative_number_stays_one() -> None:
    assert argv("sglang", {"--cuda-graph-bs": "1 2 4"})[-4:] == ["--cuda-graph-bs", "1", "2", "4"]
    assert argv("sglang", {"--chunked-prefill-size": -1})[-2:] == ["--chunked-prefill-size", "-1"]
    assert argv("sglang", {"--revision": "-x"})[-1] == "--revision=-x"


@pytest.mark.parametrize(
    "prefix",
    [
        ("docker", "exec", "box", "python3", "-m", "sglang.launch_server"),
        ("numactl", "--cpunodebind=0", "python3", "-m", "sglang.launch_server"),
        ("conda", "run", "-n", "sgl", "python", "-m", "sglang.launch_server"),
        ("/opt/venv/bin/python", "-m", "sglang.launch_server"),
    ],
)
def test_the_launch_prefix_stands_first(prefix: tuple[str, ...]) -> None:
    assert tuple(argv("sglang", {}, EngineInstall(command=prefix))[: len(prefix)]) == prefix


def test_the_configurations_environment_is_over_the_installs() -> None:
    install = EngineInstall(env={"CUDA_VISIBLE_DEVICES": "0", "NCCL_DEBUG": "WARN"})
    config = ServerConfig(engine="sglang", env={"NCCL_DEBUG": "INFO"})
    command = engine_by_name("sglang").command(config, model="m", port=1, install=install)
    assert dict(command.env) == {"CUDA_VISIBLE_DEVICES": "0", "NCCL_DEBUG": "INFO"}


@pytest.mark.parametrize(
    "flag", ["--delete-ckpt-after-loading", "--delete-ckpt", "--host", "--trust-remote-code"]
)
def test_denied_flags_never_reach_a_command(flag: str) -> None:
    with pytest.raises(InputError, match="is not passed to sglang"):
        argv("sglang", {flag: True})


def test_a_flag_that_the_user_allows_is_passed() -> None:
    install = EngineInstall(allow=("--trust-remote-code",))
    assert argv("sglang", {"--trust-remote-code": True}, install)[-1] == "--trust-remote-code"


def test_denied_variables_never_reach_a_command() -> None:
    config = ServerConfig(engine="sglang", env={"LD_PRELOAD": "x"})
    with pytest.raises(InputError, match="LD_PRELOAD is not passed"):
        engine_by_name("sglang").command(config, model="m", port=1, install=DEFAULT)


def test_false_is_an_error_not_a_dropped_flag() -> None:
    with pytest.raises(InputError, match="leave the flag out"):
        argv("sglang", {"--disable-radix-cache": False})


def test_engines_by_name() -> None:
    assert engine_by_name("llama.cpp").name == "llamacpp"
    with pytest.raises(InputError, match="Did you mean sglang"):
        engine_by_name("sgalng")
    with pytest.raises(InputError, match="Known engines"):
        engine_by_name("tensorrt")


def test_the_embedded_llamacpp_is_for_this_machine_only() -> None:
    assert default_install("llamacpp", local=False).command == ()
    assert default_install("sglang", local=True).command == ()
