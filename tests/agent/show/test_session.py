"""The plain lines of a run whose output is piped."""

import io

from parts.made_run import write_run

from moeagent.agent.events import Progress
from moeagent.agent.show.session import Watch
from moeagent.agent.show.text import console

STARTING = (
    "kv_pool (EngineCore pid=1386) INFO 11-29 23:28:57 [gpu_model_runner.py:5306] Model loading took 56.88",
    "graph_capture Capturing CUDA graphs (decode, FULL):   4%|▍         | 2/51 [00:00<00:04,  9.94it/s]",
    "graph_capture Capturing CUDA graphs (decode, FULL):  47%|████▋     | 24/51 [00:03<00:03,  7.15it/s]",
    "graph_capture Capturing CUDA graphs (decode, FULL): 100%|██████████| 51/51 [00:06<00:00,  8.13it/s]",
    "serving (APIServer pid=643) INFO:     Application startup complete.",
)
"""vLLM 0.25.1 on one H200."""


def test_a_progress_bar_that_moves_is_one_line(tmp_path) -> None:
    target = console()
    target.file = out = io.StringIO()
    with Watch(target, write_run(tmp_path, "one")) as watch:
        for text in STARTING:
            watch(Progress("launch", text))
    lines = out.getvalue()
    assert [lines.count(word) for word in ("kv_pool", "graph_capture", "serving")] == [1, 1, 1]
