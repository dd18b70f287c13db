"""What is sent: prepared prompts, or random ones that equal seeds repeat."""

from __future__ import annotations

import random
from typing import Any

from moeagent.tools.load.generator.request import Job


def make_prompts(job: Job, first: int, count: int) -> list[tuple[Any, int]]:
    """(prompt, output length) of the requests first, first + 1, ...: equal seeds give equal prompts."""
    if job.get("prompts") and first >= 0:
        return [(p["prompt"], p["out"]) for p in job["prompts"][first : first + count]]
    return [random_prompt(job["random"], first + k) for k in range(count)]


def random_prompt(spec: dict[str, Any], index: int) -> tuple[Any, int]:
    """Words (or token ids) that no other index shares, after the prefix that its group shares."""
    rng = random.Random(f"{spec['seed']}/{index}")
    shared = random.Random(f"{spec['seed']}/group/{index % spec['groups']}")
    own, out = (spread(rng, spec[key], spec["spread"]) for key in ("words", "out"))
    if spec["ids"]:
        low, high = spec["ids"]
        prefix = [shared.randrange(low, high) for _ in range(spec["prefix_words"])]
        return prefix + [rng.randrange(low, high) for _ in range(own)], out
    words = spec["vocabulary"]
    return " ".join(shared.choices(words, k=spec["prefix_words"]) + rng.choices(words, k=own)), out


def spread(rng: random.Random, length: int, share: float) -> int:
    """A length drawn evenly from within a share of the given one."""
    return max(1, round(length * rng.uniform(1 - share, 1 + share))) if share else length
