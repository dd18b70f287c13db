"""The real-process face: start, health, stream, death at 256, refusals, a hang."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

from moeagent.tools.sim.environment import (
    SIM_ENGINE_COMMAND,
    SIM_ENGINE_VERSION,
    SimHost,
    sim_host_environment,
)
from moeagent.tools.sim.machines import EP8_FLAGS
from tests.tools.sim.client import rung
from tests.tools.sim.conftest import READY, Launcher, ServerProcess


def get(server: ServerProcess, path: str, body: object = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    payload = json.dumps(body) if body is not None else None
    connection.request("POST" if body is not None else "GET", path, payload)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def events(text: str) -> list[dict]:
    blocks = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
    assert blocks[-1] == "[DONE]"
    return [json.loads(block) for block in blocks[:-1]]


def test_a_healthy_server_answers_every_endpoint(glm_box: SimHost, launch: Launcher) -> None:
    server = launch(glm_box, {"--enable-metrics": True})
    assert server.wait_for(READY)
    assert get(server, "/health")[0] == get(server, "/health_generate")[0] == 200
    assert json.loads(get(server, "/v1/models")[1])["data"][0]["id"] == glm_box.model_path
    info = json.loads(get(server, "/get_server_info")[1])
    assert info["simulated"] is True
    assert info["tp_size"] == 8
    assert info["max_total_num_tokens"] == 490880
    assert get(server, "/flush_cache", {})[0] == 200
    assert get(server, "/nothing")[0] == 404
    assert "sglang:num_running_reqs" in get(server, "/metrics")[1]

    body = {"prompt": "one two three", "max_tokens": 5, "ignore_eos": True, "stream": True}
    status, text = get(server, "/v1/completions", {**body, "stream_options": {"include_usage": True}})
    chunks = events(text)
    assert status == 200
    assert chunks[-1]["usage"]["completion_tokens"] == 5
    assert chunks[-1]["usage"]["prompt_tokens"] == 3
    assert chunks[-2]["choices"][0]["finish_reason"] == "length"
    streamed = "".join(chunk["choices"][0]["text"] for chunk in chunks if chunk["choices"])
    whole = json.loads(get(server, "/v1/completions", {**body, "stream": False})[1])
    assert whole["choices"][0]["text"] == streamed
    assert all(chunk["usage"] is None for chunk in chunks[:-1])

    native = {
        "text": "one two three",
        "sampling_params": {"max_new_tokens": 5, "ignore_eos": True},
        "stream": True,
    }
    last = events(get(server, "/generate", native)[1])[-1]
    assert last["text"] == streamed
    assert last["meta_info"]["completion_tokens"] == 5
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4, "stream": True}
    assert (
        events(get(server, "/v1/chat/completions", chat)[1])[0]["choices"][0]["delta"]["role"] == "assistant"
    )


def test_bad_requests_are_answered_and_the_server_lives(glm_box: SimHost, launch: Launcher) -> None:
    server = launch(glm_box)
    assert server.wait_for(READY)
    cases: list[tuple[object, str]] = [
        ({"prompt": "", "max_tokens": 5}, "non-empty"),
        ({"prompt": "x", "max_tokens": 0}, "max_tokens"),
        ({"prompt": "x", "stream_options": 5, "stream": True, "max_tokens": 1}, "stream_options"),
        ([1, 2], "JSON object"),
        ({"prompt": [1] * 300_000}, "exceeds the maximum allowed length"),
        ({"prompt": ["one", "two"]}, "one at a time"),
    ]
    for body, message in cases:
        status, text = get(server, "/v1/completions", body)
        assert (status, message in text) == (400, True), (body, text)
    native = {"text": "x", "sampling_params": [1]}
    assert get(server, "/generate", native)[0] == 400
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(b"nonsense\r\n\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 400")
    assert get(server, "/health")[0] == 200


def test_load_is_served_at_the_speed_of_the_world(glm_box: SimHost, launch: Launcher) -> None:
    server = launch(glm_box)
    assert server.wait_for(READY)
    outcome = asyncio.run(rung(server.port, 64, 128, 32, 32))
    assert (outcome.completed, outcome.failed, outcome.tokens) == (128, 0, 128 * 32)
    assert server.wait_for("Decode batch, #running-req:")
    assert "Prefill batch, #new-seq:" in server.log


def test_ep8_serves_64_and_dies_at_256_with_the_cause_above_the_tail(
    glm_box: SimHost, launch: Launcher
) -> None:
    server = launch(glm_box, dict(EP8_FLAGS))
    assert server.wait_for(READY)
    alive = asyncio.run(rung(server.port, 64, 64, 32, 32))
    assert alive.failed == 0
    dead = asyncio.run(rung(server.port, 256, 512, 32, 32, first=1000))
    assert dead.failed >= 256
    assert server.ended() == 137
    tail = server.lines[-40:]
    assert all(re.match(r"\d+ +0x[0-9a-f]+ .*sglang::scheduler_TP0_EP0\(", line) for line in tail)
    cause = next(number for number, line in enumerate(server.lines) if "torch.OutOfMemoryError" in line)
    assert cause < len(server.lines) - 60
    assert "85.88 GiB is allocated by PyTorch" in server.lines[cause]


def test_the_client_sees_a_stream_that_breaks_in_mid_answer(glm_box: SimHost, launch: Launcher) -> None:
    server = launch(glm_box, dict(EP8_FLAGS))
    assert server.wait_for(READY)

    async def first_bytes() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        body = json.dumps(
            {"prompt": "watch", "max_tokens": 4000, "ignore_eos": True, "stream": True}
        ).encode()
        writer.write(b"POST /v1/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        await reader.readuntil(b"data: ")
        await rung(server.port, 256, 256, 32, 32)
        rest = bytearray()
        with contextlib.suppress(ConnectionError):
            while chunk := await reader.read(65536):
                rest += chunk
        writer.close()
        return bytes(rest)

    rest = asyncio.run(first_bytes())
    assert b'"text"' in rest
    assert b"[DONE]" not in rest
    assert server.ended() == 137


def test_an_unknown_flag_ends_as_argparse_ends(glm_box: SimHost, launch: Launcher) -> None:
    server = launch(glm_box, {"--no-such-flag": True})
    assert server.ended() == 2
    assert "launch_server.py: error: unrecognized arguments: --no-such-flag" in server.log


def test_a_missing_model_folder_is_refused(glm_box: SimHost) -> None:
    command = [*SIM_ENGINE_COMMAND, "--model-path", "/models/none"]
    done = subprocess.run(command, env={**os.environ, **glm_box.env}, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Incorrect path_or_model_id: '/models/none'" in done.stderr


def test_a_port_in_use_is_found_after_loading(glm_box: SimHost, launch: Launcher) -> None:
    first = launch(glm_box)
    assert first.wait_for(READY)
    box = sim_host_environment(Path(glm_box.env["MOEAGENT_SIM_STATE"]).parent / "other", startup_scale=4000.0)
    second = launch(box, port=first.port)
    assert second.ended() == 3
    assert "address already in use" in second.log


def test_a_second_server_on_the_same_gpus_finds_no_memory(glm_box: SimHost, launch: Launcher) -> None:
    first = launch(glm_box)
    assert first.wait_for(READY)
    second = launch(glm_box)
    assert second.ended() == 137
    assert "CUDA out of memory" in second.log


def test_sigterm_ends_the_server_and_frees_the_gpus(glm_box: SimHost, launch: Launcher) -> None:
    server = launch(glm_box)
    assert server.wait_for(READY)
    server.process.send_signal(signal.SIGTERM)
    assert server.ended() == 0
    assert not list((Path(glm_box.env["MOEAGENT_SIM_STATE"]) / "servers").glob("*.json"))


def test_symmetric_memory_hangs_without_a_word(glm_box: SimHost, launch: Launcher) -> None:
    server = launch(glm_box, {"--enable-symm-mem": True, "--mem-fraction-static": 0.8})
    assert server.wait_for("Capture cuda graph bs")
    assert not server.wait_for(READY, timeout_s=0.3)
    assert server.process.poll() is None


def test_kimi_expert_parallelism_is_refused_and_then_asserts(kimi_box: SimHost, launch: Launcher) -> None:
    refused = launch(kimi_box, dict(EP8_FLAGS))
    assert refused.ended() == 137
    message = "Not enough memory. Please try to increase --mem-fraction-static. Current value: "
    message += "self.server_args.mem_fraction_static=0.778734296875"
    assert refused.log.count(message) >= 3
    assert not any("RuntimeError: Not enough memory" in line for line in refused.lines[-40:])
    raised = launch(kimi_box, {**EP8_FLAGS, "--mem-fraction-static": 0.88})
    assert raised.ended() == 137
    assert "AssertionError" in raised.log


def test_the_real_launch_module_and_parser_stand_in_for_sglang(glm_box: SimHost, launch: Launcher) -> None:
    server = launch(glm_box, command=(sys.executable, "-m", "sglang.launch_server"))
    assert server.wait_for(READY)
    script = "from importlib.metadata import version; print(version('sglang'))"
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **glm_box.env}, capture_output=True, text=True
    )
    assert done.stdout.strip() == SIM_ENGINE_VERSION


def test_help_version_and_parser_dump() -> None:
    def ask(flag: str) -> str:
        return subprocess.run([*SIM_ENGINE_COMMAND, flag], capture_output=True, text=True, check=True).stdout

    assert "--mem-fraction-static" in ask("--help")
    assert ask("--version").strip() == SIM_ENGINE_VERSION
    assert len(json.loads(ask("--dump-parser"))) == 331
