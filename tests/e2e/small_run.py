"""A campaign that is whole and small: some seconds on the simulated machine."""

from pathlib import Path

SMALL = """
[host]
target = "sim"
[workload]
input_len = 16
output_len = 8
ladder = [1, 8]
prompts_per_slot = 1.0
min_prompts = 2
[baseline]
launches = 2
[limits]
experiments = 2
launches = 6
[output_check]
batch_sizes = [1]
prompts = 2
max_tokens = 4
[sim]
seed = 3
startup_scale = 2000.0
serving_scale = 4.0
"""


def settings(folder: Path, text: str = SMALL) -> None:
    (folder / "moeagent.toml").write_text(text)
