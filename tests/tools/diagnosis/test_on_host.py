"""Logs that are read where they lie: by the host's grep and by its Python."""

import subprocess
import sys
from pathlib import Path

import pytest
from bench.diagnosis.synthetic import ROOT, write_log

from moeagent.memory.errors import InputError
from moeagent.tools.diagnosis import diagnose_log, diagnose_on_host, hostscan, load_catalogue
from moeagent.tools.diagnosis.remote import TRAVELS, read_on_host
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.protocol import Command


class Counting(LocalHost):
    """A local host that counts what its commands print."""

    travelled = 0

    def run(self, command: Command, *, timeout_s: float, stdin: bytes = b""):
        result = super().run(command, timeout_s=timeout_s, stdin=stdin)
        self.travelled += len(result.stdout)
        return result


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("host") / "server log's.txt"
    return path, write_log(path, 24 << 20)


@pytest.mark.parametrize("tool", ["grep", "python"])
def test_both_tools_find_the_cause_and_little_travels(large, tool):
    path, number = large
    host = Counting()
    log = read_on_host(host, str(path), load_catalogue(), by=tool)
    answer = diagnose_log(log)
    assert (answer.failure_class, answer.line_no) == ("oom.cuda.serve", number)
    assert answer.root_line.startswith(ROOT)
    assert host.travelled <= TRAVELS
    assert log.total == path.read_bytes().count(b"\n")


def test_a_file_without_a_last_newline_is_numbered_right(tmp_path):
    path = tmp_path / "server.log"
    number = write_log(path, 2 << 20)
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    for tool in ("grep", "python"):
        assert diagnose_log(read_on_host(LocalHost(), str(path), load_catalogue(), by=tool)).line_no == number


def test_a_small_file_travels_whole(tmp_path):
    path = tmp_path / "server.log"
    path.write_text("llama-server: x\nerror: invalid argument: --max-num-seqs\n")
    assert diagnose_on_host(LocalHost(), str(path)).failure_class == "config.invalid_arg"


@pytest.mark.parametrize(
    ("name", "message"), [("", "directory"), ("none.log", "does not exist"), ("empty", "empty")]
)
def test_what_the_host_cannot_read(tmp_path, name, message):
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match=message):
        diagnose_on_host(LocalHost(), str(tmp_path / name))


def test_the_script_needs_nothing_but_old_python(large):
    source = Path(hostscan.__file__).read_text()
    assert "moeagent" not in source
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", source, str(large[0]), "640000"], capture_output=True, check=True
    )
    assert len(done.stdout) <= TRAVELS
