"""Before the load: which server this is, whether it answers, and how many tokens a word is there."""

import http.client
import json
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from moeagent.memory.errors import HostError, InputError, MoeagentError
from moeagent.tools.load.figures import unpack
from moeagent.tools.load.generator.calls import call
from moeagent.tools.load.job import headers
from moeagent.tools.load.runner import run_rung
from moeagent.tools.load.spec import ApiName, RandomPrompts, RungSpec, Target

PROBE_OUT = 4
"""Output tokens of a probe: enough to see a stream, too few to matter."""


class Identity(NamedTuple):
    """What the server says about itself."""

    engine: str
    api: ApiName
    model: str | None
    max_len: int | None


class Calibration(NamedTuple):
    """Words of a prompt with the wanted number of tokens; not measured: the server stated nothing."""

    words: int
    tokens_per_word: float
    overhead: float
    measured: bool


ADVICE = {
    "connect": "check the address, and that the server is up",
    "tls": "give --ca-file for a private authority, or --insecure to skip verification, or use http://",
    "timeout": "the server accepts connections and does not answer: look at its log, or raise --timeout",
    "http_401": "the server wants a key: put it into the environment variable that --api-key-env names",
    "http_403": "the key is not allowed to do this",
    "http_404": "check the base URL (no path after it), --api and --model",
    "http_429": "the server limits requests: lift the limit, it cannot be measured through it",
    "http_503": "the server is not ready: wait until its health endpoint answers 200",
    "html": "this is a web page, not a model server: check the address and any proxy",
    "not_stream": "the server does not stream: it cannot be timed token by token",
    "uncounted": "the server sends no usage record: give --tokenizer",
    "early_stop": "the server does not honour ignore_eos: use --natural-stop",
    "truncated": "the connection ended before the answer did: look at the server's log",
    "in_stream_error": "the server failed on a single request: look at its log",
}
HOST_KINDS = ("connect", "tls", "timeout", "disconnected", "truncated", "in_stream_error")
CONTEXT_WORDS = ("context", "max_model_len", "maximum input length", "too long", "longer than")


def check_url(url: str) -> str:
    """The base URL; InputError unless it is http(s) with a host."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InputError(f"{url!r} is not a server's address: write it like http://127.0.0.1:30000")
    return url


def identify(target: Target, *, timeout_s: float = 10.0) -> Identity:
    """Engine, API and model by the server's own endpoints; HostError when it cannot be reached."""
    models = ask(target, "/v1/models", timeout_s)
    entry = first_model(models)
    engine = "openai"
    if ask(target, "/props", timeout_s) is not None:
        engine = "llamacpp"
    elif is_sglang(ask(target, "/server_info", timeout_s)) or is_sglang(
        ask(target, "/get_server_info", timeout_s)
    ):
        engine = "sglang"
    elif entry.get("owned_by") in ("vllm", "sglang"):
        engine = str(entry["owned_by"])
    api: ApiName = "llamacpp" if engine == "llamacpp" else "openai-completions"
    length = entry.get("max_model_len")
    return Identity(engine, api, entry.get("id"), length if isinstance(length, int) else None)


def is_sglang(info: Any) -> bool:
    """Only SGLang's server_info has internal_states."""
    return isinstance(info, dict) and "internal_states" in info


def first_model(models: Any) -> dict[str, Any]:
    """The first entry of /v1/models; empty when there is none."""
    data = models.get("data") if isinstance(models, dict) else None
    first = data[0] if isinstance(data, list) and data else None
    return first if isinstance(first, dict) else {}


def ask(target: Target, path: str, timeout_s: float) -> Any:
    """The JSON of a GET; None for any answer that is not JSON with status 200."""
    job = {
        "url": target.root,
        "headers": headers(target),
        "verify_tls": target.verify_tls,
        "ca_file": target.ca_file,
    }
    try:
        status, body = call(job, "GET", path, timeout_s)
    except (OSError, http.client.HTTPException) as error:
        kind = "timeout" if isinstance(error, TimeoutError) else "tls" if "SSL" in repr(error) else "connect"
        raise HostError(f"{target.root}{path}: {error}; {ADVICE[kind]}") from error
    if status == 401:
        raise InputError(f"{target.root}{path} answers 401: {ADVICE['http_401']}")
    try:
        return json.loads(body) if status == 200 else None
    except ValueError:
        return None


def probe(
    target: Target, words: int, *, timeout_s: float, seed: str, exact: bool = True, keep_text: bool = False
) -> dict[str, Any]:
    """One request's result; raises what `refusal` makes of a failure."""
    spec = RungSpec(
        concurrency=1,
        requests=1,
        random=RandomPrompts(words=words),
        output_len=PROBE_OUT,
        seed=seed,
        warmup=None,
        exact_length=exact,
        first_byte_timeout_s=timeout_s,
        stall_timeout_s=timeout_s,
        keep_text=keep_text,
    )
    outcome = run_rung(target, spec, deadline_s=2 * timeout_s)
    answer: dict[str, Any] = unpack(outcome.raw)["answers"][0]
    if answer["kind"]:
        raise refusal(target, answer["kind"], answer["detail"])
    return answer


def refusal(target: Target, kind: str, detail: str) -> MoeagentError:
    """A failed probe as one clear error: what is wrong with the request or address, or with the host."""
    advice = ADVICE.get(kind, "look at the server's log")
    if kind == "http_400" and any(word in detail.lower() for word in CONTEXT_WORDS):
        advice = "the prompt does not fit the context: lower --input-len or raise the server's limit"
    message = f"{target.root} ({target.api}): {kind}: {detail or 'no message'}; {advice}"
    return HostError(message) if kind in HOST_KINDS or kind.startswith("http_5") else InputError(message)


def calibrate(
    target: Target, input_len: int, *, timeout_s: float = 60.0, seed: str = "calibration"
) -> Calibration:
    """How many words make a prompt of `input_len` tokens, by the prompt tokens of two probes.

    The second probe has about the full length: a server that is ready and dies of its first long prefill, or
    whose context is too short, shows it here. HostError or InputError when a probe fails.
    """
    few, many = max(1, input_len // 4), max(2, input_len)
    low = probe(target, few, timeout_s=timeout_s, seed=f"{seed}/short", exact=False)["prompt"]
    if low is not None and low > 0 and few >= 16:
        many = max(few + 1, round(input_len * few / low))
    high = probe(target, many, timeout_s=timeout_s, seed=f"{seed}/long", exact=False)["prompt"]
    if low is None or high is None or high <= low:
        return Calibration(input_len, 1.0, 0.0, measured=False)
    per_word = (high - low) / (many - few)
    overhead = high - per_word * many
    return Calibration(max(1, round((input_len - overhead) / per_word)), per_word, overhead, measured=True)
