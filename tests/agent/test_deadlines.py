"""Each step has a deadline that really ends the work, on real processes and real HTTP."""

import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moeagent.agent.events import Events
from moeagent.agent.interrupt import StopRequest
from moeagent.agent.settings import CampaignSettings
from moeagent.agent.workbench import Workbench
from moeagent.memory.records import ServerConfig
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.processes import find_tagged, reap
from moeagent.tools.load.spec import RandomPrompts, RungSpec

SERVER = """
import http.server, sys, time
port = int(sys.argv[sys.argv.index("--port") + 1])
def chat():
    while True:
        print("loading model, still", flush=True)
        time.sleep(0.05)
if "chatty" in sys.argv:
    chat()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def do_POST(self):
        time.sleep(10000)
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
print("listening on http", flush=True)
server.serve_forever()
"""
CONFIG = ServerConfig(engine="llamacpp")

pytestmark = pytest.mark.timeout(150)


def nothing(data: object) -> str:
    return ""


@pytest.fixture
def run() -> Iterator[str]:
    run = f"late-{secrets.token_hex(4)}"
    yield run
    reap(LocalHost(), find_tagged(LocalHost(), run), grace_s=0)


def bench(folder: Path, run: str, *words: str, start_s: float = 60.0) -> Workbench:
    settings = CampaignSettings.model_validate(
        {
            "host": {"target": "local", "folder": str(folder)},
            "engine": {"name": "llamacpp", "command": [sys.executable, "-c", SERVER, *words]},
            "model": str(folder / "none.gguf"),
            "start_timeout_s": start_s,
            "rung_timeout_s": 1.0,
        }
    )
    return Workbench(settings, run, folder, Events(), StopRequest(), None)


def gone(made: Workbench, run: str) -> bool:
    stopped = made.stop("L1", nothing)
    return stopped["verified"] and find_tagged(LocalHost(), f"{run}/") == []


def test_a_server_that_is_busy_for_ever_is_not_waited_for(tmp_path: Path, run: str) -> None:
    made = bench(tmp_path, run, "chatty", start_s=1.0)
    report = made.start("L1", CONFIG, nothing)
    assert (report["outcome"], report["reason"]) == ("hung", "not ready after 1 s")
    assert gone(made, run)


def test_a_server_that_never_answers_ends_calibration_rung_and_output_check(tmp_path: Path, run: str) -> None:
    made = bench(tmp_path, run, "mute")
    assert made.start("L1", CONFIG, nothing)["outcome"] == "ready"
    calibration = made.calibrate("L1", CONFIG, 8)
    assert calibration["words"] is None
    assert calibration["problem"]
    spec = RungSpec(concurrency=2, requests=4, output_len=4, random=RandomPrompts(words=4), seed="late")
    rung = made.load("L1", CONFIG, spec.model_dump(mode="json", exclude_none=True), nothing)["rung"]
    assert rung["completed"] == 0
    assert rung["failed"] >= 2
    sample = made.sample_outputs("L1", CONFIG, {"prompts": ["a"], "batch_sizes": [1], "max_tokens": 4})
    assert sample["sample"]["batches"][0]["answers"][0]["error"]
    assert gone(made, run)
