"""One clear error for every server that cannot be measured; each is a real one on this machine."""

import json
import socket
import ssl
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from bench.loadgen.scripted import CLOSE, HANG, Received, Script, ScriptedServer, completion, events, plain

from moeagent.memory.errors import HostError, InputError, MoeagentError
from moeagent.tools.load.probe import calibrate, check_url, identify, probe
from moeagent.tools.load.spec import Target

MODELS = json.dumps({"data": [{"id": "tiny", "owned_by": "vllm", "max_model_len": 4096}]})


def answering(actions: Iterable[Any]) -> Script:
    kept = list(actions)
    return lambda request: kept if request.method == "POST" else plain(404, "{}")


def target(server: ScriptedServer, **changes: Any) -> Target:
    return Target(base_url=server.url, api="openai-completions", **changes)


@pytest.mark.parametrize(
    ("actions", "kind", "error"),
    [
        (plain(401, '{"error":"no key"}'), "http_401", InputError),
        (plain(404, '{"error":"no such route"}'), "http_404", InputError),
        (plain(429, '{"error":"slow down"}'), "http_429", InputError),
        (plain(503, '{"error":"Loading model"}'), "http_503", HostError),
        (plain(200, "<html><body>login</body></html>", "text/html"), "html", InputError),
        (plain(200, "<!DOCTYPE html>", "text/plain"), "html", InputError),
        (plain(200, '{"choices":[{"text":"a"}]}'), "not_stream", InputError),
        (plain(200, "hello", "text/plain"), "not_stream", InputError),
        (
            plain(400, '{"message":"This model\'s maximum context length is 64 tokens"}'),
            "lower --input-len",
            InputError,
        ),
        (events({"error": {"message": "out of memory"}}), "out of memory", HostError),
        (events(*completion(4)[:-1]), "usage", InputError),
        (events(*completion(2)), "ignore_eos", InputError),
        ([*events(*completion(4), done=False), CLOSE], "truncated", HostError),
        ([CLOSE], "disconnected", HostError),
        ([b"SSH-2.0-OpenSSH_9.2p1\r\n\r\n"], "not_http", InputError),
        ([HANG], "timeout", HostError),
        ([*events(*completion(4)[:2], done=False), HANG], "timeout", HostError),
    ],
)
def test_each_unusable_answer_is_one_error_with_advice(
    actions: list, kind: str, error: type[MoeagentError]
) -> None:
    with ScriptedServer(answering(actions)) as server, pytest.raises(error, match=kind) as caught:
        probe(target(server), 4, timeout_s=0.7, seed="t")

    assert server.url in str(caught.value)
    assert ";" in str(caught.value)


def test_a_port_without_a_server_is_a_connect_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    gone = Target(base_url=f"http://127.0.0.1:{port}", api="openai-completions")

    for ask in (lambda: identify(gone), lambda: probe(gone, 4, timeout_s=2, seed="t")):
        with pytest.raises(HostError, match="address"):
            ask()


@pytest.mark.part("openssl")
def test_tls_is_verified_unless_told_otherwise(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ScriptedServer(answering(events(*completion(4))), tls=context) as server:
        with pytest.raises(HostError, match="tls"):
            probe(target(server), 4, timeout_s=5, seed="t")
        assert probe(target(server, verify_tls=False), 4, timeout_s=5, seed="t")["out"] == 4
        assert probe(target(server, ca_file=str(certificate)), 4, timeout_s=5, seed="t")["out"] == 4


def test_the_token_is_sent_and_shown_nowhere() -> None:
    def script(request: Received) -> list[bytes]:
        return plain(401, json.dumps({"error": f"bad key {request.headers.get('authorization')}"}))

    with ScriptedServer(script) as server:
        keyed = target(server, api_key="sk-secret-1234")
        with pytest.raises(InputError) as caught:
            probe(keyed, 4, timeout_s=5, seed="t")

    assert server.received[0].headers["authorization"] == "Bearer sk-secret-1234"
    assert "sk-secret" not in f"{caught.value}{keyed!r}"


def test_the_server_is_told_by_its_endpoints() -> None:
    def sglang(request: Received) -> list[bytes]:
        return plain(200, '{"internal_states":[{}]}' if "server_info" in request.path else MODELS) if (
            request.path != "/props"
        ) else plain(404, "{}")  # fmt: skip

    with ScriptedServer(sglang) as server:
        assert identify(target(server)) == ("sglang", "openai-completions", "tiny", 4096)
    with ScriptedServer(lambda r: plain(200, "{}") if r.path == "/props" else plain(404, "{}")) as server:
        assert identify(target(server))[:2] == ("llamacpp", "llamacpp")
    with ScriptedServer(
        lambda r: plain(200, MODELS) if r.path == "/v1/models" else plain(404, "{}")
    ) as server:
        assert identify(target(server)).engine == "vllm"


def test_words_are_calibrated_by_the_servers_own_count() -> None:
    def script(request: Received) -> list[bytes]:
        tokens = 11 + 2 * len(request.body["prompt"].split())
        return events(*completion(request.body["max_tokens"], prompt=tokens))

    with ScriptedServer(script) as server:
        found = calibrate(target(server), 211, timeout_s=5)

    assert (found.words, found.tokens_per_word, found.overhead, found.measured) == (100, 2.0, 11.0, True)


def test_a_server_that_states_no_prompt_tokens_leaves_the_length_unknown() -> None:
    def script(request: Received) -> list[bytes]:
        return events(*completion(request.body["max_tokens"], prompt=5))

    with ScriptedServer(script) as server:
        assert calibrate(target(server), 64, timeout_s=5).measured is False


@pytest.mark.parametrize(
    "url", ["", "foo", "127.0.0.1:8000", "ftp://h", "http://", "http://h:99999", "http://[::1"]
)
def test_a_wrong_address_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(InputError, match="like http"):
        check_url(url)
