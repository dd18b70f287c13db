"""Looking for lines where they lie, and at ports."""

import os
import socket
from pathlib import Path

import pytest

from moeagent.memory.errors import HostError, InputError
from moeagent.tools.hosts.ports import check_port, free_port, listening_ports, port_holders
from moeagent.tools.hosts.protocol import Host
from moeagent.tools.hosts.search import parse_lines, search


@pytest.fixture
def log(tmp_path: Path) -> str:
    lines = [f"line {n}" + " ERROR" * (n % 100 == 0) + " Ignore" * (n == 200) for n in range(1, 1001)]
    lines[499] = "\x80\xff ERROR: " + "x" * 5000
    file = tmp_path / "a 'log"
    file.write_bytes("\n".join(lines).encode("latin-1"))
    return str(file)


def test_lines_with_numbers_and_context(host: Host, log: str) -> None:
    found = search(host, log, ["ERROR"], context=1, max_matches=2)
    assert [(line.number, line.text, line.matched) for line in found.lines][:3] == [
        (99, "line 99", False),
        (100, "line 100 ERROR", True),
        (101, "line 101", False),
    ]
    assert [line.number for line in found.lines if line.matched] == [100, 200]
    assert found.truncated


def test_unwanted_lines_are_left_out_before_counting(host: Host, log: str) -> None:
    found = search(
        host, log, ["ERR", "nothing"], exclude=["^line 2.*Ignore"], max_matches=9, max_line_bytes=20
    )
    assert [line.number for line in found.lines] == [100, 300, 400, 500, 600, 700, 800, 900, 1000]
    assert len(found.lines[3].text) <= 30
    assert not found.truncated


def test_bounded_bytes(host: Host, log: str) -> None:
    found = search(host, log, ["line"], max_matches=5000, max_bytes=1000)
    assert found.truncated
    assert 80 < len(found.lines) < 120


def test_nothing_found_and_hostile_pattern(host: Host, log: str, tmp_path: Path) -> None:
    assert search(host, log, [f"'; touch {tmp_path}/x; '"]).lines == ()
    assert not (tmp_path / "x").exists()


def test_searches_that_cannot_be(host: Host, tmp_path: Path, log: str) -> None:
    with pytest.raises(HostError, match=r"cannot search .*: no such file"):
        search(host, f"{tmp_path}/none", ["x"])
    with pytest.raises(HostError, match="cannot search"):
        search(host, log, ["("])
    for patterns in ([], [""], ["a\nb"]):
        with pytest.raises(InputError):
            search(host, log, patterns)


def test_parse_lines_of_other_output() -> None:
    found = parse_lines(b"1:a:b\n2-c\n--\nnot a line\n7:d\n8-e\n", max_matches=1, max_bytes=100)
    assert [(line.number, line.text) for line in found.lines] == [(1, "a:b"), (2, "c")]
    assert found.truncated


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::1")])
def test_a_taken_port_names_its_holder(host: Host, family: int, address: str) -> None:
    with socket.socket(family) as taken:
        taken.bind((address, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert port in listening_ports(host)
        assert [holder.pid for holder in port_holders(host, port)] == [os.getpid()]
        with pytest.raises(
            HostError, match=rf"port {port} is taken by .*\(pid {os.getpid()}, user \w+\): stop it"
        ):
            check_port(host, port)
        assert free_port(host, port) > port
    check_port(host, port)
    assert port_holders(host, port) == ()


def test_no_port_left(host: Host) -> None:
    with pytest.raises(HostError, match="no free port from 65536"):
        free_port(host, 65_536)
