"""A server log of any size: start-up, hours of serving with noise, and a crash near the end."""

import random
from pathlib import Path

_PARTS = Path(__file__).parents[2] / "fixtures" / "diagnosis" / "synthetic"
STARTUP = (_PARTS / "startup.log").read_text()
CRASH = (_PARTS / "crash.log").read_text()
ROOT = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB."
_NOISE = (
    "{at} TP0 EP0] KV cache pool is full. Retract requests. #retracted_reqs: {n}, #new_token_ratio: 0.2",
    '{at}] INFO:     127.0.0.1:{p} - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request',
    "/opt/torch/cuda/__init__.py:65: FutureWarning: The pynvml package is deprecated.",
    "{at} TP0 EP0] Input length ({p} tokens) exceeds the maximum allowed length ({n} tokens).",
)
_SERVING = (
    "{at} TP0 EP0] Decode batch, #running-req: {n}, #token: {p}, token usage: 0.{n:04d}, cuda graph: True, "
    "gen throughput (token/s): {p}.07, #queue-req: {s}, ",
    "{at} TP0 EP0] Prefill batch, #new-seq: {s}, #new-token: {p}, #cached-token: {n}, token usage: 0.{n}, "
    "#running-req: {n}, #queue-req: {s}, ",
    '{at}] INFO:     127.0.0.1:{p} - "POST /v1/chat/completions HTTP/1.1" 200 OK',
)


def block(seed: int, lines: int = 4000) -> bytes:
    """Lines of ordinary serving with one line of noise in a thousand."""
    rng = random.Random(seed)
    rows = []
    for _ in range(lines):
        minute, second = rng.randrange(60), rng.randrange(60)
        noisy = rng.random() < 0.001
        row = rng.choice(_NOISE) if noisy else rng.choices(_SERVING, (5, 2, 3))[0]
        at = f"[2026-02-20 11:{minute:02d}:{second:02d}"
        rows.append(row.format(at=at, s=second, n=rng.randrange(4000), p=rng.randrange(1024, 65000)))
    return ("\n".join(rows) + "\n").encode()


def write_log(path: Path, size: int) -> int:
    """Write about `size` bytes; returns the line number of the root line."""
    blocks = [block(seed) for seed in range(16)]
    number = 0
    with path.open("wb") as out:
        out.write(STARTUP.encode())
        number += STARTUP.count("\n")
        at = 0
        while out.tell() < size:
            out.write(blocks[at % len(blocks)])
            number += blocks[at % len(blocks)].count(b"\n")
            at += 1
        before = CRASH[: CRASH.index(ROOT)].count("\n")
        out.write(CRASH.encode())
    return number + before + 1
