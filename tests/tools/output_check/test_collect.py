import json
import socket

import pytest

from moeagent.memory.errors import InputError
from moeagent.tools.output_check.collect import collect, read_answer
from moeagent.tools.output_check.compare import compare


def test_answers_come_over_http_greedily_and_a_right_server_agrees_with_itself(serve, right, prompts):
    server = serve(right)
    one = collect(server.url, model="m", prompts=prompts, max_tokens=24)
    two = collect(serve(right).url + "/v1/", model="m", prompts=prompts, max_tokens=24)
    assert [(b.batch_size, len(b.answers)) for b in one.batches] == [(1, 8), (8, 8), (64, 64), (256, 256)]
    assert server.asked[0] == {
        "model": "m", "prompt": prompts[0], "max_tokens": 24, "temperature": 0, "logprobs": 1,
    }  # fmt: skip
    assert one.batches[0].answers[0].logprobs is not None
    assert compare([one], two).ok


def test_garbage_from_batch_64_upwards_is_found_with_evidence(serve, right, garbage_from_64, prompts):
    baseline = collect(serve(right).url, model="m", prompts=prompts)
    candidate = collect(serve(garbage_from_64).url, model="m", prompts=prompts)
    verdict = compare([baseline], candidate)
    assert not verdict.ok
    assert {e.batch_size for e in verdict.evidence} == {64, 256}


def test_a_server_without_log_probabilities_is_asked_without_them(serve, right, prompts):
    server = serve(lambda prompt, batch: right(prompt, batch))
    plain = server.answer

    def picky(prompt, batch):
        return (400, b"logprobs is not supported") if "logprobs" in server.asked[-1] else plain(prompt, batch)

    server.answer = picky
    found = collect(server.url, model="m", prompts=prompts[:1], batch_sizes=(1,))
    assert not found.batches[0].answers[0].error
    assert "logprobs" not in server.asked[-1]


def test_nothing_listens_is_an_error_in_the_answers():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    found = collect(url, model="m", prompts=["hello"], batch_sizes=(1, 2))
    assert all("ConnectionRefusedError" in a.error for b in found.batches for a in b.answers)


def test_a_server_that_accepts_and_never_answers_is_left_at_the_deadline():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        found = collect(url, model="m", prompts=["hello"], batch_sizes=(1, 8), timeout_s=0.2)
    assert all(a.error for b in found.batches for a in b.answers)


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://host/", "http://"])
def test_a_bad_address_is_an_input_error(url):
    with pytest.raises(InputError, match="not an http or https address"):
        collect(url, model="m", prompts=["hello"])


def test_no_prompts_is_an_input_error():
    with pytest.raises(InputError, match="no prompts"):
        collect("http://127.0.0.1:1", model="m", prompts=[])


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b"<html>not found</html>"),
        (401, b'{"error": "key"}'),
        (200, b"[]"),
        (200, b'{"choices": []}'),
        (200, b'{"choices": [{"text": null}]}'),
        (500, b'{"choices": [{"text": "half"}]}'),
        (200, b"\xff\xfe"),
    ],
)
def test_anything_else_than_a_completion_is_an_error(status, body):
    assert f"status {status}" in read_answer(0, status, body).error


def test_log_probabilities_in_both_spellings_and_not_a_number():
    ids = [3, 4]
    openai = {"text": "a b", "token_ids": ids, "logprobs": {"token_logprobs": [-0.1, float("nan")]}}
    found = read_answer(0, 200, json.dumps({"choices": [openai]}).encode())
    assert (found.logprobs, found.token_ids) == ((-0.1, None), (3, 4))
    chatty = {"text": "a b", "logprobs": {"content": [{"logprob": -0.5}, {"logprob": None}]}}
    found = read_answer(0, 200, json.dumps({"choices": [chatty]}).encode())
    assert (found.logprobs, found.token_ids) == ((-0.5, None), None)
