"""Counting the tokens of answers when the server does not: by a tokenizer, after the run."""

from importlib import import_module
from pathlib import Path
from typing import Any

from moeagent.memory.errors import InputError
from moeagent.tools.load.figures import pack, recompute, unpack
from moeagent.tools.load.spec import RungOutcome


def count_tokens(outcome: RungOutcome, tokenizer: Path, *, exact: bool) -> RungOutcome:
    """The outcome with the tokens of answers that had no usage record counted by `tokenizer.json`.

    A model may need more or fewer tokens for a text than its tokenizer makes of it, so with `exact` only
    counts that are off by more than one in twenty are failures. The text itself is not kept.
    """
    payload = unpack(outcome.raw)
    encoder = load_tokenizer(tokenizer)
    for answer in payload["answers"]:
        text = answer.pop("text", "")
        if not answer["kind"] and answer["out"] is None:
            answer["out"] = len(encoder.encode(text, add_special_tokens=False).ids)
            payload["plan"]["counted_by"] = tokenizer.name
            judge(answer, exact=exact)
    raw = pack(payload)
    return RungOutcome(recompute(raw), raw)


def judge(answer: dict[str, Any], *, exact: bool) -> None:
    """Mark an answer whose length is clearly not the asked one."""
    out, asked = answer["out"], answer["asked"]
    if out > asked * 1.05 + 1:
        answer.update(kind="wrong_count", detail=f"about {out} tokens where {asked} were asked for")
    elif exact and out < asked * 0.95 - 1:
        answer.update(kind="early_stop", detail=f"about {out} of {asked} tokens")


def load_tokenizer(path: Path) -> Any:
    """A tokenizer of the `tokenizers` library; InputError when that or the file is missing."""
    try:
        tokenizer = import_module("tokenizers").Tokenizer
    except ImportError as error:
        raise InputError("--tokenizer needs the tokenizers library: pip install tokenizers") from error
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.is_file():
        raise InputError(f"{file} does not exist: give the model's tokenizer.json or its folder")
    return tokenizer.from_file(str(file))
