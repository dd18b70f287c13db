"""Mutated settings files: settings, or an InputError that names the file; never another exception."""

import random
from pathlib import Path

from moeagent.agent.hosting import decide_host, prepare
from moeagent.agent.settings import load_settings
from moeagent.memory.errors import InputError

SEED = 11
SETTINGS = """
model = "/models/GLM-5-NVFP4"
approve = false
start_timeout_s = 900.0
[host]
target = "sim"
price_per_hour = 12.5
[engine]
name = "sglang"
[[engine.install]]
name = "other"
command = ["python", "-m", "sglang.launch_server"]
[baseline]
flags = { "--tp-size" = 8, "--mem-fraction-static" = 0.9, "--trust-remote-code" = true }
env = { NCCL_ALGO = "Ring" }
launches = 2
[workload]
ladder = [1, 10, 256]
input_len = 1024
[goal]
name = "max-goodput"
[[goal.constraints]]
metric = "ttft"
percentile = "p99"
bound = 2.0
[limits]
experiments = 5
hours = 2.5
[space]
pin = ["--tp-size"]
[space.limit."--max-num-seqs"]
low = 64
high = 512
[sim]
seed = 3
[[idea]]
statement = "Larger chunks"
flags = { "--chunked-prefill-size" = 8192 }
"""
VALUES = (
    "1e400", "-1", "nan", "inf", '"; rm -rf /"', "[]", "{}", "true", '""', "9" * 22, '"\\u0000"',
    "1979-05-27", "[[1]]", '"$(id)"',
)  # fmt: skip


def mutated(text: str, chance: random.Random) -> bytes:
    """Another value, a lost, doubled or renamed line, or damaged bytes."""
    lines = text.splitlines()
    at = chance.randrange(1, len(lines))
    match chance.randrange(5):
        case 0:
            lines[at] = f"{lines[at].partition('=')[0]}= {chance.choice(VALUES)}"
        case 1:
            del lines[at]
        case 2:
            lines.insert(at, lines[at])
        case 3:
            lines[at] = lines[at].replace(chance.choice("aeiou"), "", 1)
        case _:
            data = bytearray(text.encode())
            for _ in range(chance.randint(1, 6)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            return bytes(data)
    return "\n".join(lines).encode()


def test_a_mutated_settings_file_is_read_or_refused_by_name(tmp_path: Path, full: bool) -> None:
    chance = random.Random(SEED)
    path = tmp_path / "moeagent.toml"
    tried, refused = 1000 if full else 100, 0
    for _ in range(tried):
        path.write_bytes(mutated(SETTINGS, chance))
        try:
            prepare(decide_host(load_settings(path, {})))
        except InputError:
            refused += 1
    print(f"\n{tried} mutated settings files: {refused} refused by name, {tried - refused} valid")
    assert 0 < refused < tried
