"""Ready, dead or hung: by endpoint, log and process together."""

import http.server
import threading
from collections.abc import Callable

import pytest
from parts.sshd import free_port

from moeagent.memory.errors import InputError
from moeagent.tools.engines.protocol import ReadySpec, StageSpec
from moeagent.tools.hosts.protocol import Host
from moeagent.tools.server.follow import LogReader
from moeagent.tools.server.health import is_healthy
from moeagent.tools.server.lifecycle import ServerHandle
from moeagent.tools.server.readiness import Progress, ReadyReport, wait_until_ready

Launch = Callable[..., ServerHandle]
READY = ReadySpec(
    health_paths=("/health_generate", "/health"),
    ready_log="ready to roll",
    stages=(
        StageSpec(name="load", pattern="Load weight", stall_s=60),
        StageSpec(name="graph_capture", pattern="Capture", stall_s=0.3),
        StageSpec(name="serving", pattern="ready to roll", stall_s=60),
    ),
)


def wait(host: Host, handle: ServerHandle, ready: ReadySpec = READY, limit_s: float = 60) -> ReadyReport:
    return wait_until_ready(host, handle, ready, limit_s=limit_s, poll_s=0.05)


def test_ready(host: Host, launch: Launch) -> None:
    seen: list[Progress] = []
    handle = launch("Load weight", "Load weight", "listen", "The server is ready to roll!")
    report = wait_until_ready(host, handle, READY, limit_s=60, poll_s=0.05, on_progress=seen.append)
    assert (report.outcome, report.stage, report.why) == ("ready", "serving", "")
    assert [stage.name for stage in report.stages] == ["load", "serving"]
    assert report.log_bytes == len("Load weight\n" * 2 + "The server is ready to roll!\n")
    assert seen[-1].stage == "serving"
    assert seen[-1].last_line == "The server is ready to roll!"


def test_died(host: Host, launch: Launch) -> None:
    report = wait(host, launch("Load weight", "error: out of memory", "die"))
    assert (report.outcome, report.exit_code, report.stage) == ("died", 7, "load")
    assert report.log_bytes == len("Load weight\nerror: out of memory\n")


def test_silent_hang_is_told_by_the_stage(host: Host, launch: Launch) -> None:
    report = wait(host, launch("Load weight", "Capture cuda graph", "hang"))
    assert (report.outcome, report.stage) == ("hung", "graph_capture")
    assert "no new log line" in report.why


def test_limit(host: Host, launch: Launch) -> None:
    report = wait(host, launch("Load weight", "hang"), limit_s=0.1)
    assert (report.outcome, report.why) == ("hung", "not ready after 0.1 s")


def test_a_log_line_alone_is_not_ready(host: Host, launch: Launch) -> None:
    assert wait(host, launch("ready to roll", "hang"), limit_s=0.5).outcome == "hung"


def test_a_server_whose_log_lacks_the_line_is_not_called_hung(host: Host, launch: Launch) -> None:
    report = wait(host, launch("listen", "Capture"))
    assert report.outcome == "ready"
    assert "never showed the line" in report.why


class Stranger(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(("end", "outcome"), [("die", "died"), ("hang", "hung")])
def test_another_server_on_the_port_does_not_count(
    host: Host, launch: Launch, end: str, outcome: str
) -> None:
    port = free_port()
    handle = launch("Capture", "ready to roll", end, port=port)
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), Stranger) as stranger:
        threading.Thread(target=stranger.serve_forever, args=(0.05,)).start()
        report = wait(host, handle, limit_s=1)
        stranger.shutdown()
    assert report.outcome == outcome
    if outcome == "hung":
        assert f"port {port} is held by" in report.why


def test_no_ready_line_known(host: Host, launch: Launch) -> None:
    ready = ReadySpec(health_paths=("/health",), ready_log=None, stages=())
    assert wait(host, launch("listen"), ready).outcome == "ready"


def test_log_reader_keeps_partial_lines_and_moves_forward_only() -> None:
    reader = LogReader(READY)
    reader.feed(b"Load we", 1)
    assert reader.stage is None
    assert reader.stall_s == 60
    reader.feed(b"ight 10%\rLoad weight 20%\rCap", 2)
    reader.feed(b"ture\nLoad weight again\n\n\xff\n", 3)
    assert [(s.name, s.at_s) for s in reader.stages] == [("load", 2), ("graph_capture", 3)]
    assert (reader.stall_s, reader.last_line, reader.ready_line) == (0.3, "\ufffd", False)


def test_log_reader_bounds_a_line_without_end() -> None:
    reader = LogReader(READY)
    for _ in range(100):
        reader.feed(b"x" * 100_000, 0)
    reader.feed(b" Capture\n", 1)
    assert reader.stage == "graph_capture"


def test_a_pattern_that_is_none() -> None:
    bad = ReadySpec(health_paths=(), ready_log="(", stages=())
    with pytest.raises(InputError, match="log pattern"):
        LogReader(bad)


def test_health_of_nobody_and_of_a_server_that_speaks_no_http() -> None:
    assert not is_healthy(free_port(), ("/health",), timeout_s=1)
    assert not is_healthy(1, (), timeout_s=1)
