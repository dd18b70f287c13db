"""What every host does, on this machine and over SSH."""

import http.client
import os
import stat
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from moeagent.memory.errors import HostError, InputError
from moeagent.tools.hosts.factory import open_host
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.protocol import Command, Host


def sh(text: str, *arguments: str) -> Command:
    return Command(("sh", "-c", text, "sh", *arguments))


def test_run_gives_status_and_both_streams(host: Host) -> None:
    result = host.run(sh("cat; echo err >&2; exit 3"), timeout_s=30, stdin=b"in\0\xff\n")
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"in\0\xff\n", b"err\n")


def test_killed_by_a_signal(host: Host) -> None:
    assert host.run(sh("echo before; kill -9 $$"), timeout_s=30).exit_code == 137


def test_big_output_on_both_streams(host: Host) -> None:
    result = host.run(sh("head -c 5000000 /dev/zero >&2; head -c 5000000 /dev/zero"), timeout_s=60)
    assert (result.ok, len(result.stdout), len(result.stderr)) == (True, 5_000_000, 5_000_000)


def test_big_input_that_nobody_reads(host: Host) -> None:
    assert host.run(sh("echo done"), timeout_s=60, stdin=b"x" * 5_000_000).stdout == b"done\n"


def test_a_child_that_keeps_the_streams_open_delays_nothing(host: Host) -> None:
    result = host.run(sh("sleep 20 & echo $!"), timeout_s=10)
    os.kill(int(result.stdout), 9)
    assert result.ok


def test_not_executable_is_126(host: Host, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert host.run(Command((str(file),)), timeout_s=30).exit_code == 126


def test_out_of_time_stops_the_whole_group(host: Host, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    # The child holds the only writing end: reading ends when it is gone.
    script = '(trap "" TERM; exec sleep 100) >"$1" & echo ready >&2; wait'
    seen: list[bytes] = []
    reader = threading.Thread(target=lambda: seen.append(fifo.read_bytes()))
    reader.start()
    with pytest.raises(HostError, match=r"no end after 1 s.*stopped.*give it more time"):
        host.run(sh(script, str(fifo)), timeout_s=1)
    reader.join(20)
    assert seen == [b""]


def test_a_title_stands_for_a_long_text(host: Host) -> None:
    command = Command(("sh", "-c", "sleep 100"), title="look at http://me:secret@host")
    with pytest.raises(HostError, match=r"stopped: look at http://me:\*\*\*@host; "):
        host.run(command, timeout_s=0.1)


def test_read_parts_of_a_file(host: Host, tmp_path: Path) -> None:
    file = tmp_path / "a 'b"
    file.write_bytes(b"0123\0\xff6789")
    assert host.read(str(file)) == b"0123\0\xff6789"
    assert host.read(str(file), offset=4, limit=2) == b"\0\xff"
    assert host.read(str(file), offset=100) == b""
    assert host.read(str(file), limit=0) == b""


def test_read_what_is_not_there(host: Host, tmp_path: Path) -> None:
    with pytest.raises(HostError, match=rf"cannot read {tmp_path}/none: [Nn]o such file"):
        host.read(f"{tmp_path}/none")
    with pytest.raises(HostError, match="cannot read"):
        host.read(str(tmp_path))


def test_put_makes_folder_and_mode_and_replaces_whole(host: Host, tmp_path: Path) -> None:
    file = tmp_path / "new folder" / "file"
    host.put(str(file), b"old" * 100_000)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    host.put(str(file), b"\0new", mode=0o755)
    assert file.read_bytes() == b"\0new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o755
    assert list(file.parent.iterdir()) == [file]


def test_put_where_nothing_can_be_written(host: Host, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HostError, match=r"cannot write .*/file/x: .*check its folder"):
        host.put(f"{tmp_path}/file/x", b"")


class Greeter(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello " * 50_000)

    def log_message(self, *_: object) -> None:
        pass


def test_forward_carries_http(host: Host) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Greeter) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        with host.forward(server.server_port) as port:
            bodies = [get(port) for _ in range(3)]
        server.shutdown()
    assert bodies == [b"hello " * 50_000] * 3


def get(port: int) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read()
    finally:
        connection.close()


def test_forward_to_nobody_closes_the_connection(host: Host) -> None:
    with host.forward(1) as port, pytest.raises((OSError, http.client.HTTPException)):
        get(port)


def test_open_host() -> None:
    assert isinstance(open_host("local"), LocalHost)
    assert open_host("me@gpu1:2222").name == "me@gpu1:2222"


@pytest.mark.parametrize(
    "spec",
    ["", "-oProxyCommand=id", "a b", "host:port", "a@b@c:x", "[::1", "me@", "$(id)", "me;id@host", "h;id"],
)
def test_a_host_that_cannot_be_read(spec: str) -> None:
    with pytest.raises(InputError, match="host"):
        open_host(spec)
