"""`moeagent diagnose PATH --host`: the log stays where it is, over a real OpenSSH server."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.diagnosis.synthetic import ROOT, write_log
from e2e.command import MOEAGENT, environment
from parts.sshd import Sshd

pytestmark = pytest.mark.part("sshd")

LOG_BYTES = 20_000_000


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    server = Sshd(tmp_path_factory.mktemp("sshd")).start()
    (server.folder / "ssh_config").write_text(
        f"Host box\n HostName 127.0.0.1\n Port {server.port}\n IdentityFile {server.user_key}\n"
        f" UserKnownHostsFile {server.home}/.ssh/known_hosts\n"
    )
    yield server
    server.stop()


def diagnose(box: Sshd, folder: Path, path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    words = ["diagnose", str(path), "--host", "box", "--ssh-config", str(box.folder / "ssh_config"), *options]
    return subprocess.run(
        [*MOEAGENT, *words], cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=120
    )


def test_a_large_log_is_diagnosed_where_it_lies(box: Sshd, tmp_path: Path) -> None:
    log = tmp_path / "server log.txt"
    number = write_log(log, LOG_BYTES)
    done = diagnose(box, tmp_path, log, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["class"], answer["line_no"]) == ("oom.cuda.serve", number)
    assert ROOT in answer["root_line"]
    panel = diagnose(box, tmp_path, log)
    assert "oom.cuda.serve" in panel.stdout
    assert "CUDA out of memory" in panel.stdout


@pytest.mark.parametrize("name", ["nowhere.log", "."])
def test_what_is_no_log_on_the_host_is_one_clear_line(box: Sshd, tmp_path: Path, name: str) -> None:
    done = diagnose(box, tmp_path, tmp_path / name)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("moeagent: ")
    assert len(done.stderr.splitlines()) == 1


def test_an_unknown_host_key_is_refused_until_it_is_accepted(box: Sshd, tmp_path: Path) -> None:
    log = tmp_path / "short.log"
    write_log(log, 100_000)
    known_hosts = box.home / ".ssh" / "known_hosts"
    before = known_hosts.read_text()
    known_hosts.write_text("")
    refused = diagnose(box, tmp_path, log)
    assert refused.returncode == 3
    assert "--accept-new" in refused.stderr
    assert diagnose(box, tmp_path, log, "--accept-new").returncode == 0
    known_hosts.write_text(before)
