"""The sampler on a real shell, here and over SSH, with the simulated nvidia-smi."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from parts.sshd import Sshd

from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.protocol import Host
from moeagent.tools.hosts.ssh import SshHost
from moeagent.tools.load.gpu_state import parse_gpu_states
from moeagent.tools.load.sampling import GpuSampler, parse_clock

LIMIT_S = 60.0


def working_on(box: Path) -> list[str]:
    """Command lines of what runs with the box's variables: the sampling shell, and what it starts."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.fsencode(box) in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().decode())
        except OSError:
            continue
    return found


def eventually(holds: Callable[[], bool], limit_s: float = 20.0) -> bool:
    end = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def sampled(box: Path) -> bool:
    return any("nvidia_smi" in command for command in working_on(box))


def test_each_second_is_sampled_and_nothing_is_left(gpu_host: Host, tmp_path: Path) -> None:
    folder = tmp_path / "launch"
    with GpuSampler(gpu_host).during(str(folder), limit_s=LIMIT_S) as samples:
        assert eventually(lambda: sampled(tmp_path / "box"))
        time.sleep(2.5)

    states = parse_gpu_states(samples.text)
    assert {state.gpu for state in states} == set(range(8))
    assert states[0].watts is not None
    assert abs(states[-1].at_s - time.time()) < 30
    assert abs(samples.ahead_s) < 5
    assert list(folder.iterdir()) == []
    assert eventually(lambda: working_on(tmp_path / "box") == [])


def test_what_a_script_in_its_place_started_ends_too(gpu_host: Host, tmp_path: Path) -> None:
    tool = tmp_path / "box/bin/nvidia-smi"
    tool.rename(tool.with_name("real-smi"))
    # As sites wrap it. Here the filter holds its lines back, so that no broken pipe ends it either.
    tool.write_text('#!/bin/sh\nreal-smi "$@" | sed "s/^//"\n')
    tool.chmod(0o755)
    with GpuSampler(gpu_host).during(str(tmp_path / "launch"), limit_s=LIMIT_S):
        assert eventually(lambda: {"sed", "sh"} <= {c.split("\0")[0] for c in working_on(tmp_path / "box")})
    assert eventually(lambda: working_on(tmp_path / "box") == [])


def test_a_host_without_nvidia_smi_is_asked_once(tmp_path: Path) -> None:
    sampler = GpuSampler(LocalHost())
    taken = []
    for name in ("first", "second"):
        with sampler.during(str(tmp_path / name), limit_s=LIMIT_S) as samples:
            pass
        taken.append(samples.text)

    assert taken == ["", ""]
    assert (tmp_path / "first").is_dir()
    assert not (tmp_path / "second").exists()


def test_an_error_in_the_load_ends_the_sampling(gpu_host: Host, tmp_path: Path) -> None:
    def interrupted() -> None:
        with GpuSampler(gpu_host).during(str(tmp_path / "launch"), limit_s=LIMIT_S):
            assert eventually(lambda: sampled(tmp_path / "box"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert eventually(lambda: working_on(tmp_path / "box") == [])


CLIENT = """
import os, sys, time
from pathlib import Path
from tools.load.conftest import with_gpus
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.load.sampling import GpuSampler
root = Path(sys.argv[1])
with GpuSampler(with_gpus(LocalHost(), root / "box")).during(str(root / "launch"), limit_s=600):
    time.sleep(600)
"""


def test_a_client_that_is_killed_leaves_no_sampler(tmp_path: Path) -> None:
    script = tmp_path / "client.py"
    script.write_text(CLIENT)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    client = subprocess.Popen([sys.executable, str(script), str(tmp_path)], env=env)
    assert eventually(lambda: sampled(tmp_path / "box"))

    client.send_signal(signal.SIGKILL)
    client.wait()

    assert eventually(lambda: working_on(tmp_path / "box") == [])


@pytest.mark.part("sshd")
def test_a_connection_that_breaks_leaves_no_sampler_and_no_error(tmp_path: Path) -> None:
    from tests.tools.load.conftest import with_gpus

    server = Sshd(tmp_path / "sshd").start()
    host = SshHost(server.spec, server.settings(reconnect_s=0.5))
    folder = tmp_path / "launch"
    with GpuSampler(with_gpus(host, tmp_path / "box")).during(str(folder), limit_s=LIMIT_S) as samples:
        assert eventually(lambda: sampled(tmp_path / "box"))
        server.stop()
        assert eventually(lambda: working_on(tmp_path / "box") == [])
    host.close()

    assert samples.text == ""


def test_the_clock_of_a_date_without_nanoseconds() -> None:
    assert parse_clock("1796080448.250000000\n") == 1796080448.25
    assert parse_clock("1796080448.N\n") == 1796080448.5
    assert parse_clock("sh: date: not found") is None
