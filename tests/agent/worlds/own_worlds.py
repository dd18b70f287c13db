"""A user's world modules, written to files as a user would write them."""

from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_world.py"
HEAD = f"""
import importlib.util, math, time
spec = importlib.util.spec_from_file_location("own_world", {str(EXAMPLE)!r})
example = importlib.util.module_from_spec(spec)
import sys
sys.modules["own_world"] = example
spec.loader.exec_module(example)
"""
BAD = {
    "raises": ("def launch(self, config, workload, nonce): raise KeyError('no such kernel')", "KeyError"),
    "not_a_number": (
        "def launch(self, config, workload, nonce):\n"
        "        return example.outcome(example.LaunchOutcome.COMPLETED, (example.rung(1, 10.0).model_copy("
        "update={'output_tok_s': math.nan}),), 'ready')",
        "output_tok_s at concurrency 1 = nan",
    ),
    "hangs": ("def launch(self, config, workload, nonce): time.sleep(3600)", "did not return within"),
    "wrong_type": ("def launch(self, config, workload, nonce): return 3", "gave a int"),
    "no_oracle": ("def oracle(self): return self.baseline, float('nan')", "oracle gave the value nan"),
}


def write_bad(folder: Path, name: str) -> str:
    """A module with one bad world; returns what `--world` takes."""
    method, _ = BAD[name]
    path = folder / f"{name}.py"
    path.write_text(
        f"{HEAD}\nclass Bad(example.Toy):\n    {method}\n\ndef factory(seed):\n    return Bad(seed)\n"
    )
    return f"{path}:factory"
