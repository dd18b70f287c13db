"""GPU memory before a launch and after its stop."""

from pathlib import Path

from moeagent.tools.hosts.environment import HostWithEnvironment
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.server.gpu_memory import parse_used, still_held, used_memory


def host_with_path(path: str) -> HostWithEnvironment:
    return HostWithEnvironment(LocalHost("gpu1"), {"PATH": path}, name="gpu1", simulated=False)


def test_used_memory_is_read_by_gpu() -> None:
    assert parse_used("0, 2\n1, 94567\n") == {0: 2, 1: 94567}


def test_a_figure_that_is_no_number_is_left_out() -> None:
    assert parse_used("0, [N/A]\n1, 5\nUnable to determine the device handle\n\n") == {1: 5}


def test_only_what_exceeds_the_slack_is_held() -> None:
    assert still_held({0: 2, 1: 2, 2: 9000}, {0: 90_000, 1: 400, 2: 9000, 3: 80_000}) == {0: 89_998}


def test_a_host_without_the_tool_says_nothing(tmp_path: Path) -> None:
    assert used_memory(host_with_path(str(tmp_path))) == {}


def test_a_host_with_the_tool_is_asked_by_index(tmp_path: Path) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text('#!/bin/sh\n[ "$1" = --query-gpu=index,memory.used ] && echo "0, 612"\n')
    tool.chmod(0o755)
    assert used_memory(host_with_path(str(tmp_path))) == {0: 612}
