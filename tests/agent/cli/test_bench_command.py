"""`moeagent bench` as a user meets it: exit status, standard output, standard error."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from bench.loadgen.scripted import CLOSE, HANG, Received, ScriptedServer, completion, events, plain

MODELS = json.dumps({"data": [{"id": "tiny", "owned_by": "vllm"}]})


def healthy(request: Received) -> Iterable[Any]:
    if request.method != "POST":
        return plain(200, MODELS) if request.path == "/v1/models" else plain(404, "{}")
    words = len(request.body["prompt"].split()) if isinstance(request.body["prompt"], str) else 0
    return events(*completion(request.body["max_tokens"], prompt=words + 1))


def bench(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "moeagent.agent", "bench", *words],
        capture_output=True, text=True, timeout=60, check=False, env=os.environ | (env or {}),
    )  # fmt: skip


SMALL = ("--concurrency", "1,4", "--prompts", "8", "--input-len", "32", "--output-len", "6", "--no-warmup")


def test_json_holds_the_rungs_and_recompute_prints_the_same(tmp_path: Path) -> None:
    saved = tmp_path / "run.bench"
    with ScriptedServer(healthy) as server:
        done = bench(server.url, *SMALL, "--goodput", "ttft:2s,tpot:1s", "--json", "--save", str(saved))

    rungs = json.loads(done.stdout)["rungs"]
    assert done.returncode == 0
    assert [(r["concurrency"], r["completed"], r["output_tokens"]) for r in rungs] == [(1, 8, 48), (4, 8, 48)]
    assert rungs[0]["goodput_rps"] > 0
    assert {"mean", "p50", "p90", "p95", "p99"} == set(rungs[0]["ttft_ms"])
    assert bench("--recompute", str(saved), "--json").stdout == done.stdout
    prompts = [r.body["prompt"] for r in server.received if r.method == "POST"]
    assert len(set(prompts)) == len(prompts)


def test_the_table_is_for_people_and_progress_is_not_in_it() -> None:
    with ScriptedServer(healthy) as server:
        done = bench(server.url, *SMALL)

    assert "out tok/s" in done.stdout
    assert "32 tokens" not in done.stdout
    assert "tiny" in done.stderr
    assert "concurrency 4: 8 complete, 0 failed" in done.stderr


def test_failures_are_listed_with_an_example() -> None:
    def script(request: Received) -> Iterable[Any]:
        if request.method == "POST" and request.number % 3 == 0 and request.body["max_tokens"] == 6:
            return plain(429, '{"error":"too many"}')
        return healthy(request)

    with ScriptedServer(script) as server:
        done = bench(server.url, *SMALL)

    assert done.returncode == 0
    assert "http_429" in done.stdout
    assert "too many" in done.stdout


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        ((), 2, "give the server's URL"),
        (("localhost:8000",), 2, "like http://"),
        (("http://127.0.0.1:1",), 3, "Connection refused"),
        (("http://h", "--goodput", "ttft:fast"), 2, "ttft:200ms"),
        (("http://h", "--dataset", "sonnet"), 2, "choose one of"),
        (("http://h", "--api", "grpc"), 2, "choose one of"),
        (("http://h", "--arrival", "normal"), 2, "choose one of"),
        (("http://h", "--token-ids", "9"), 2, "LOW-HIGH"),
        (("http://h", "--concurrency", "0"), 2, "concurrency"),
        (("--recompute", "/nonexistent"), 2, "cannot read"),
    ],
)
def test_bad_words_are_one_line_and_a_status(words: tuple[str, ...], status: int, complaint: str) -> None:
    done = bench(*words)

    assert (done.returncode, done.stdout) == (status, "")
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("actions", "status", "complaint"),
    [
        (plain(401, "{}"), 2, "MOEAGENT_BENCH_KEY"),
        (plain(404, "{}"), 2, "http_404"),
        (plain(429, "{}"), 2, "http_429"),
        (plain(200, "<html>", "text/html"), 2, "web page"),
        (plain(200, "{}"), 2, "not_stream"),
        ([HANG], 3, "does not answer"),
        ([CLOSE], 3, "disconnected"),
    ],
)
def test_servers_that_cannot_be_measured(actions: list[Any], status: int, complaint: str) -> None:
    def script(request: Received) -> Iterable[Any]:
        return actions if request.method == "POST" else healthy(request)

    with ScriptedServer(script) as server:
        done = bench(server.url, *SMALL, "--timeout", "1")

    assert (done.returncode, done.stdout) == (status, "")
    assert complaint in done.stderr.replace("--api-key-env names", "MOEAGENT_BENCH_KEY")
    assert "Traceback" not in done.stderr


def test_a_bad_line_of_a_data_set_is_named(tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text('{"prompt": "fine"}\n{"prompt": 5}\n')
    with ScriptedServer(healthy) as server:
        done = bench(server.url, *SMALL, "--dataset", "file", "--dataset-path", str(data))

    assert done.returncode == 2
    assert "data.jsonl line 2" in done.stderr


def test_the_key_comes_from_the_environment_and_is_never_printed() -> None:
    with ScriptedServer(healthy) as server:
        done = bench(
            server.url,
            *SMALL,
            "--json",
            "--api-key-env",
            "BENCH_TOKEN",
            env={"BENCH_TOKEN": "sk-very-secret"},
        )

    assert server.received[-1].headers["authorization"] == "Bearer sk-very-secret"
    assert "sk-very-secret" not in done.stdout + done.stderr
