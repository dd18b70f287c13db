"""Detached processes: known by tag, start time and user; stopped whole; found again by files."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from parts.sshd import Sshd, descendants, name_of

from moeagent.memory.errors import HostError, InputError
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.processes import (
    Process,
    ProcessSpec,
    attach,
    find_tagged,
    members,
    probe,
    reap,
    start_detached,
    stop,
    wait_for_end,
)
from moeagent.tools.hosts.protocol import Command, Host, Secret
from moeagent.tools.hosts.ssh import SshHost

STUBBORN = "trap '' TERM; echo deaf; while :; do sleep 0.1; done"


@pytest.fixture
def tag(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A tag of this test alone; what carries it is gone afterwards."""
    tag = f"test-{os.getpid()}-{tmp_path.name}"
    yield tag
    reap(LocalHost(), find_tagged(LocalHost(), tag), grace_s=0)


def start(host: Host, tmp_path: Path, tag: str, text: str = "exec sleep 1000", **env: str) -> Process:
    command = Command(("sh", "-c", text), env=env)
    return start_detached(host, ProcessSpec(command, str(tmp_path / "a folder"), tag))


def wait_for_log(process: Process, text: str) -> None:
    """Follow the log until the text is in it."""
    with subprocess.Popen(["tail", "-n", "+1", "-f", process.log], stdout=subprocess.PIPE) as tail:
        assert tail.stdout is not None
        assert any(text.encode() in line for line in tail.stdout)
        tail.kill()


def test_life_of_a_process(host: Host, tmp_path: Path, tag: str) -> None:
    process = start(host, tmp_path, tag, "echo out; echo err >&2; exec sleep 1000")
    wait_for_log(process, "err")
    assert (tmp_path / "a folder" / "server.log").read_text() == "out\nerr\n"
    assert probe(host, process).alive
    assert os.getsid(process.pid) == process.session != os.getsid(0)
    assert members(host, process) == tuple(sorted((process.pid, process.session)))
    assert attach(host, process.folder) == process
    assert find_tagged(host, tag) == [process]

    report = stop(host, process, grace_s=10)
    assert (report.gone, report.signals, report.exit_code) == (True, ("SIGTERM",), 143)
    assert not probe(host, process).alive
    assert find_tagged(host, tag) == []
    assert stop(host, process, grace_s=1).signals == ()


def test_environment_folder_modes_and_secrets(host: Host, tmp_path: Path, tag: str) -> None:
    command = Command(
        ("sh", "-c", 'echo "$A|$HF_TOKEN|$MOEAGENT_TAG|$PWD"; umask; sleep 1000'),
        env={"A": "x '\ny", "HF_TOKEN": Secret("s3cret")},
        cwd="/usr",
    )
    process = start_detached(host, ProcessSpec(command, f"{tmp_path}/f", tag))
    wait_for_log(process, "00")
    umask = host.run(Command(("sh", "-c", "umask")), timeout_s=10).text
    assert (tmp_path / "f/server.log").read_text() == f"x '\ny|s3cret|{tag}|/usr\n{umask}"
    for file in (tmp_path / "f").iterdir():
        assert file.stat().st_mode & 0o077 == 0, file
    assert "s3cret" not in (tmp_path / "f/process").read_text()


@pytest.mark.parametrize(("text", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("kill -SEGV $$", 139)])
def test_exit_code_is_written_down(host: Host, tmp_path: Path, tag: str, text: str, code: int) -> None:
    process = start(host, tmp_path, tag, text)
    while (state := probe(host, process)).alive:
        pass
    assert state.exit_code == code


def test_a_program_that_is_not_there(host: Host, tmp_path: Path, tag: str) -> None:
    process = start_detached(host, ProcessSpec(Command(("/none/such",)), f"{tmp_path}/f", tag))
    assert stop(host, process, grace_s=0).exit_code == 127
    assert "not found" in Path(process.log).read_text()


def test_ignoring_sigterm_ends_by_sigkill_with_its_exit_code(host: Host, tmp_path: Path, tag: str) -> None:
    process = start(host, tmp_path, tag, STUBBORN)
    wait_for_log(process, "deaf")
    report = stop(host, process, grace_s=0.1)
    assert (report.gone, report.signals, report.exit_code) == (True, ("SIGTERM", "SIGKILL"), 137)


def test_children_that_outlive_their_parent_are_stopped(host: Host, tmp_path: Path, tag: str) -> None:
    # One in the session, one in a session of its own, one that also lost the tag but not its session.
    text = "sleep 1001 & setsid sleep 1002 & env -i sleep 1003 & echo started; kill -9 $PPID; exit 5"
    process = start(host, tmp_path, tag, text)
    wait_for_log(process, "started")
    while probe(host, process).alive:
        pass
    left = members(host, process)
    assert len(left) == 3
    assert probe(host, process).exit_code is None
    report = stop(host, process, grace_s=10)
    assert report.gone
    assert not any(map(name_of, left))


def test_a_child_without_tag_in_its_own_session_is_found_by_descent(
    host: Host, tmp_path: Path, tag: str
) -> None:
    process = start(host, tmp_path, tag, "env -i setsid sleep 1004 & echo started; wait")
    wait_for_log(process, "started")
    while len(left := members(host, process)) < 3:
        pass
    assert stop(host, process, grace_s=10).gone
    assert not any(map(name_of, left))


def test_a_title_written_over_the_environment(host: Host, tmp_path: Path, tag: str) -> None:
    """As setproctitle does it: the tag is gone from /proc, the session still tells."""
    erase = (
        "import ctypes, re, time; ranges = open('/proc/self/stat').read().rpartition(') ')[2].split();"
        "start, end = int(ranges[47]), int(ranges[48]); ctypes.memset(start, 0, end - start);"
        "print('erased', flush=True); time.sleep(1000)"
    )
    spec = ProcessSpec(Command((sys.executable, "-c", erase)), f"{tmp_path}/f", tag)
    process = start_detached(host, spec)
    wait_for_log(process, "erased")
    assert tag not in Path(f"/proc/{process.pid}/environ").read_text()
    os.kill(process.session, signal.SIGKILL)
    while members(host, process) != (process.pid,):
        pass
    assert stop(host, process, grace_s=10).gone


def test_look_alikes_are_never_signalled(host: Host, tmp_path: Path, tag: str) -> None:
    """Same argv; a tag that begins with ours; our tag inside a longer value; our tag behind a newline."""
    process = start(host, tmp_path, tag)
    disguises = [
        {},
        {"MOEAGENT_TAG": f"{tag}0"},
        {"X": f"MOEAGENT_TAG={tag}"},
        {"X": f"a\nMOEAGENT_TAG={tag}\nb"},
    ]
    look_alikes = [
        subprocess.Popen(["sleep", "1000"], env={**os.environ, **more}, start_new_session=True)
        for more in disguises
    ]
    try:
        assert stop(host, process, grace_s=10).gone
        assert [p.poll() for p in look_alikes] == [None] * 4
        assert find_tagged(host, f"{tag}/") == []
    finally:
        for look_alike in look_alikes:
            look_alike.kill()
            look_alike.wait()


def test_a_recycled_pid_is_not_ours(host: Host, tmp_path: Path, tag: str) -> None:
    process = start(host, tmp_path, tag)
    stop(host, process, grace_s=10)
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as stranger:
        recycled = process.model_copy(update={"pid": stranger.pid, "session": stranger.pid})
        assert not probe(host, recycled).alive
        assert stop(host, recycled, grace_s=1).signals == ()
        assert stranger.poll() is None
        stranger.kill()


def test_another_boot_means_gone(host: Host, tmp_path: Path, tag: str) -> None:
    process = start(host, tmp_path, tag)
    assert not probe(host, process.model_copy(update={"boot_id": "of-yesterday"})).alive


def test_starting_twice_is_starting_once(host: Host, tmp_path: Path, tag: str) -> None:
    process = start(host, tmp_path, tag)
    assert start(host, tmp_path, tag) == process
    assert len(members(host, process)) == 2
    with pytest.raises(HostError, match="belongs to another process"):
        start(host, tmp_path, f"{tag}-2")


def test_a_folder_that_cannot_be_made(host: Host, tmp_path: Path, tag: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HostError, match=r"starting a process in .*/file/x"):
        start_detached(host, ProcessSpec(Command(("true",)), f"{tmp_path}/file/x", tag))


def test_attach_where_nothing_was_started(host: Host, tmp_path: Path) -> None:
    assert attach(host, str(tmp_path)) is None


def test_attach_to_a_damaged_file(host: Host, tmp_path: Path) -> None:
    (tmp_path / "process").write_text("pid x\n")
    with pytest.raises(HostError, match="is damaged"):
        attach(host, str(tmp_path))


def test_leftovers_are_found_without_their_folder(host: Host, tmp_path: Path, tag: str) -> None:
    process = start(host, tmp_path, tag)
    for name in ("process", "server.log"):
        (tmp_path / "a folder" / name).unlink()
    (found,) = find_tagged(host, tag)
    assert found.tag == tag
    assert [report.gone for report in reap(host, [found], grace_s=10)] == [True]
    assert not name_of(process.pid)


@pytest.mark.parametrize("tag", ["", "a b", "a\nb", "$(id)", "/x", "a*"])
def test_tags_that_could_be_misread(tag: str) -> None:
    with pytest.raises(InputError, match="tag"):
        ProcessSpec(Command(("true",)), "/tmp/x", tag)


def test_relative_folder() -> None:
    with pytest.raises(InputError, match="absolute"):
        ProcessSpec(Command(("true",)), "x", "t")


@pytest.mark.part("sshd")
def test_a_dead_sshd_leaves_the_process_running(tmp_path: Path, tag: str) -> None:
    server = Sshd(tmp_path / "sshd").start()
    host = SshHost(server.spec, server.settings())
    try:
        process = start(host, tmp_path, tag)
        server.stop()
        assert name_of(process.pid)
        server.start()
        assert attach(host, process.folder) == process
        assert probe(host, process).alive
        assert stop(host, process, grace_s=10).gone
    finally:
        host.close()
        server.stop()


def test_kill_9_of_the_starter_leaves_the_process_running(tmp_path: Path, tag: str) -> None:
    starter = (
        "import os, sys; from moeagent.tools.hosts.local import LocalHost;"
        "from moeagent.tools.hosts.processes import *; from moeagent.tools.hosts.protocol import Command;"
        "start_detached(LocalHost(), ProcessSpec(Command(('sleep', '1000')), *sys.argv[1:]));"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", starter, f"{tmp_path}/f", tag], check=False)
    assert done.returncode == -9
    process = attach(LocalHost(), f"{tmp_path}/f")
    assert process is not None
    assert probe(LocalHost(), process).alive
    assert process.pid not in descendants(os.getpid())
    assert stop(LocalHost(), process, grace_s=10).gone


def test_a_start_that_was_killed_before_it_started_anything_is_taken_over(
    host: Host, tmp_path: Path, tag: str
) -> None:
    (tmp_path / "a folder" / "started").mkdir(parents=True)
    process = start(host, tmp_path, tag)
    assert probe(host, process).alive


def test_a_start_that_is_under_way_elsewhere_is_waited_for(host: Host, tmp_path: Path, tag: str) -> None:
    (tmp_path / "a folder" / "started").mkdir(parents=True)
    with subprocess.Popen(["sleep", "1000"], env={"MOEAGENT_TAG": tag}, start_new_session=True) as other:
        with pytest.raises(HostError, match=r"an earlier start in .* was cut off"):
            start(host, tmp_path, tag)
        other.kill()


def test_waiting_for_the_end(host: Host, tmp_path: Path, tag: str) -> None:
    process = start(
        host, tmp_path, tag, 'until [ -e "$GATE" ]; do sleep 0.05; done; exit 4', GATE=f"{tmp_path}/g"
    )
    assert wait_for_end(host, process, 0).alive
    (tmp_path / "g").touch()
    assert wait_for_end(host, process, 60).exit_code == 4


def test_another_boot_is_told(host: Host, tmp_path: Path, tag: str) -> None:
    process = start(host, tmp_path, tag)
    assert not probe(host, process).rebooted
    assert probe(host, process.model_copy(update={"boot_id": "of-yesterday"})).rebooted
