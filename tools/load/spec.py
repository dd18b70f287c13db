"""What a rung of load is: the target, the requests, and how they arrive."""

import json
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from pydantic import Field, JsonValue, NonNegativeInt, PositiveFloat, PositiveInt, SecretStr

from moeagent.memory.records import Record, Rung

ApiName = Literal["openai-completions", "openai-chat", "sglang", "llamacpp"]


class Api(Record):
    """One streaming API, as data."""

    path: str
    template: dict[str, JsonValue]
    """The body; "$MODEL", "$PROMPT" and "$OUT" stand for what changes."""
    exact: dict[str, JsonValue]
    """Merged into the body when answers must have exactly the asked length."""
    token_ids: bool = False
    token_ids_key: tuple[str, str] | None = None
    """Key of a text prompt and the key that replaces it for token ids, where they differ."""
    cumulative: bool = False
    """Every event repeats the whole text."""
    source: str


@cache
def apis() -> dict[str, Api]:
    """The known APIs by name."""
    text = files("moeagent.tools.load").joinpath("apis.json").read_text(encoding="utf-8")
    return {name: Api.model_validate(entry) for name, entry in json.loads(text).items()}


@cache
def vocabulary() -> tuple[str, ...]:
    """Short common English words: one token each in every tokenizer that was trained on English."""
    return tuple(files("moeagent.tools.load").joinpath("vocabulary.txt").read_text(encoding="utf-8").split())


class Target(Record):
    """The server under load."""

    base_url: str
    """Such as http://127.0.0.1:30000; a trailing /v1 is accepted."""
    api: ApiName
    model: str = "default"
    api_key: SecretStr | None = None
    """Sent as a bearer token, printed never."""
    verify_tls: bool = True
    ca_file: str | None = None
    keep_alive: bool = True
    extra_body: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def root(self) -> str:
        """The base URL without its trailing /v1."""
        return self.base_url.rstrip("/").removesuffix("/v1")


class Prompt(Record):
    """One prepared request."""

    prompt: str | list[int]
    out: PositiveInt
    """Output tokens asked for."""


class RandomPrompts(Record):
    """Prompts made of random common words or token ids, unique for each seed and index."""

    words: PositiveInt
    """Own words (or ids) of each prompt: what calibration found to give the wanted number of tokens."""
    prefix_words: NonNegativeInt = 0
    """Words that all prompts of a group share."""
    groups: PositiveInt = 1
    ids: tuple[int, int] | None = None
    """Draw token ids from this half-open range instead of words."""
    spread: float = Field(default=0.0, ge=0, lt=1)
    """Draw both lengths evenly from within this share of them: equal lengths keep all streams in phase."""


class Arrivals(Record):
    """When requests are sent in open loop, in seconds after the start."""

    kind: Literal["poisson", "constant", "burst", "trace"]
    times_s: tuple[float, ...]
    rate: float | None = None
    """Requests per second offered."""


class WarmUp(Record):
    """Waves of short requests at the rung's own concurrency, excluded from every figure."""

    min_waves: PositiveInt = 2
    max_waves: PositiveInt = 5
    tolerance: PositiveFloat = 0.1
    """Steady when two waves in a row take equally long within this."""
    output_len: PositiveInt = 32
    max_s: PositiveFloat = 300.0


class StopRule(Record):
    """When the answer is clear before the rung is done."""

    max_failed: NonNegativeInt | None = None
    below_events_s: PositiveFloat | None = None
    """Give up when fewer events per second than this arrive ..."""
    after_s: PositiveFloat = 20.0
    """... this long after the start."""


class Slo(Record):
    """A request is good when it is complete and meets every bound; milliseconds."""

    ttft_ms: PositiveFloat | None = None
    tpot_ms: PositiveFloat | None = None
    e2e_ms: PositiveFloat | None = None


class RungSpec(Record):
    """One rung. Either `prompts` are given, or `random` describes them."""

    concurrency: PositiveInt
    requests: PositiveInt | None = None
    """None only with a duration."""
    duration_s: PositiveFloat | None = None
    output_len: PositiveInt = 128
    random: RandomPrompts
    """Used for the warm-up in any case, so that it never touches the prompts that are measured."""
    prompts: tuple[Prompt, ...] = ()
    seed: str = "0"
    """Different for each rung and repeat, equal for the configurations that are compared."""
    exact_length: bool = True
    """Ask the server to ignore the end-of-sequence token; a shorter answer is then a failure."""
    arrivals: Arrivals | None = None
    """None: closed loop."""
    warmup: WarmUp | None = Field(default_factory=WarmUp)
    flush_path: str | None = None
    """Path to POST to between warm-up and measurement, such as /flush_cache."""
    slo: Slo | None = None
    stop: StopRule = Field(default_factory=StopRule)
    processes: PositiveInt = 1
    realtime: bool = True
    """Measure in the mildest real-time class where the user may; 10 ms of CPU per 1,000 tokens."""
    keep_text: bool = False
    """Keep the answers' text, for a tokenizer to count."""
    connect_timeout_s: PositiveFloat = 10.0
    first_byte_timeout_s: PositiveFloat = 600.0
    stall_timeout_s: PositiveFloat = 120.0
    roofline_tok_s: PositiveFloat | None = None
    """No machine of this kind can be faster: a higher figure is invalid."""
    network_rtt_ms: PositiveFloat | None = None
    """A TTFT below it cannot be an answer of this server."""


class RungOutcome(NamedTuple):
    """The figures of a rung, and the compressed per-request results they can be computed from again."""

    rung: Rung
    raw: bytes
    window_s: tuple[float, float] | None = None
    """First send and last token, in Unix time by the clock of the machine that made the load."""


def merged(base: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """The base with the extra keys laid over it, level by level."""
    result = dict(base)
    for key, value in extra.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result
