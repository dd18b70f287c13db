"""The trap: a flag that the engine accepts, prints among its settings, and reads nowhere."""

from pathlib import Path

from e2e.command import moeagent, moeagent_json
from e2e.small_run import SMALL, settings

IDEA = """
[[idea]]
statement = "Eight decode steps without a scheduling step in between are faster"
flags = { "--num-continuous-decode-steps" = 8 }
"""


def test_a_flag_that_is_read_nowhere_is_no_gain(tmp_path: Path) -> None:
    """SGLang 0.5.9 shows 8 in its server_args line, so that the answer of the engine alone would not tell."""
    settings(tmp_path, SMALL + IDEA)
    moeagent(tmp_path, "run", "--run-id", "trap", "--limit", "experiments=1")
    [hypothesis] = moeagent_json(tmp_path, "log", "trap")["hypotheses"]
    assert hypothesis["launches"][0]["effective"]["--num-continuous-decode-steps"] == 8
    assert hypothesis["verdict"]["kind"] == "no-op"
    assert "changed nothing that is in force" in hypothesis["verdict"]["reason"]
    assert "no change is proven better" in moeagent(tmp_path, "export", "trap").stderr
