"""SSH as it is in the field: jumps, noisy shells, and connections that break."""

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from parts.sshd import Sshd, name_of
from parts.wire import Wire

from moeagent.memory.errors import HostError, RemoteError
from moeagent.tools.hosts.protocol import Command
from moeagent.tools.hosts.ssh import SshHost

pytestmark = pytest.mark.part("sshd")
HELLO = Command(("echo", "hello"), repeatable=True)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Sshd]]:
    """Starts servers of this test alone."""
    servers: list[Sshd] = []

    def start(extra: str = "") -> Sshd:
        servers.append(Sshd(tmp_path / f"sshd{len(servers)}", extra=extra).start())
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def open_ssh() -> Iterator[Callable[..., SshHost]]:
    """Opens hosts that are closed at the end."""
    hosts: list[SshHost] = []

    def connect(server: Sshd, spec: str = "", **changes: object) -> SshHost:
        hosts.append(SshHost(spec or server.spec, server.settings(**changes)))
        return hosts[-1]

    yield connect
    for host in hosts:
        host.close()


def test_two_jumps(serve, open_ssh, tmp_path: Path) -> None:
    """The target is reached only through the jumps: its first server allows no other forwarding."""
    first, second, target = serve(), serve(), serve()
    config = tmp_path / "config"
    config.write_text(
        f"Host target\n HostName 127.0.0.1\n Port {target.port}\n IdentityFile {target.user_key}\n"
        " ProxyJump one,two\n"
        f"Host one\n HostName 127.0.0.1\n Port {first.port}\n IdentityFile {first.user_key}\n"
        f"Host two\n HostName 127.0.0.1\n Port {second.port}\n IdentityFile {second.user_key}\n"
    )
    known_hosts = tmp_path / "known_hosts"
    for server in (first, second, target):
        server.trust(known_hosts)
    host = open_ssh(target, "target", config_file=config, known_hosts=(known_hosts,), key_files=())
    shown = Command(("sh", "-c", "echo $SSH_CONNECTION"))
    assert host.run(shown, timeout_s=30).text.split()[3] == str(target.port)
    with host.forward(target.port) as port, socket.create_connection(("127.0.0.1", port)) as client:
        assert client.recv(8) == b"SSH-2.0-"

    # A jump that dies is a broken connection like any other.
    second.stop()
    second.start()
    assert host.run(HELLO, timeout_s=30).text == "hello\n"


def test_a_jump_that_forwards_nothing(serve, open_ssh, tmp_path: Path) -> None:
    jump, target = serve("AllowTcpForwarding no"), serve()
    config = tmp_path / "config"
    config.write_text(f"Host target\n HostName 127.0.0.1\n Port {target.port}\n ProxyJump {jump.spec}\n")
    host = open_ssh(jump, "target", config_file=config)
    with pytest.raises(RemoteError, match=r"target .*unreachable through 127\.0\.0\.1: .*AllowTcpForwarding"):
        host.run(HELLO, timeout_s=30)


RELAY = """
import os, socket, sys, threading
server = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def upward():
    while data := os.read(0, 9999):
        server.sendall(data)
threading.Thread(target=upward, daemon=True).start()
while data := server.recv(9999):
    os.write(1, data)
"""


def test_proxy_command(sshd: Sshd, open_ssh, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(f"ProxyCommand {sys.executable} {tmp_path}/relay.py %h %p\n")
    (tmp_path / "relay.py").write_text(RELAY)
    assert open_ssh(sshd, config_file=config).run(HELLO, timeout_s=30).text == "hello\n"


NOISE = "echo 'Welcome!'; echo '{\"not\": \"ours\"}'; echo noise >&2; "


@pytest.mark.parametrize(
    "force",
    [
        NOISE + 'exec sh -c "$SSH_ORIGINAL_COMMAND"',
        NOISE + 'sh -c "$SSH_ORIGINAL_COMMAND"; code=$?; echo bye; exit $code',
        NOISE + 'sh -c "$SSH_ORIGINAL_COMMAND"; exit 0',
        "printf 'no newline'; sh -c \"$SSH_ORIGINAL_COMMAND\"",
    ],
)
def test_noise_of_the_login_shell_is_not_our_output(serve, open_ssh, tmp_path: Path, force: str) -> None:
    host = open_ssh(serve(f"ForceCommand {force}"))
    result = host.run(Command(("sh", "-c", "cat; echo err >&2; exit 4")), timeout_s=30, stdin=b"\0data")
    assert (result.exit_code, result.stdout, result.stderr) == (4, b"\0data", b"err\n")
    host.put(f"{tmp_path}/file", b"x" * 1000)
    assert host.read(f"{tmp_path}/file", offset=10) == b"x" * 990


def test_noise_of_bashrc(serve, open_ssh, tmp_path: Path) -> None:
    """bash as login shell, reading a .bashrc because sshd started it."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".bashrc").write_text("echo from bashrc; echo also >&2; alias echo=false\n")
    host = open_ssh(serve(f"SetEnv HOME={tmp_path}/home SHLVL=0"))
    assert host.run(HELLO, timeout_s=30).stdout == b"hello\n"


def test_a_locale_that_the_host_does_not_have(serve, open_ssh, tmp_path: Path) -> None:
    """bash complains about it on standard error, before our command and in its name."""
    lines = 'SetEnv LC_ALL=xx_YY.UTF-8 LANG=de_DE.UTF-8\nForceCommand exec bash -c "$SSH_ORIGINAL_COMMAND"'
    host = open_ssh(serve(lines))
    text = Command(("sh", "-c", "printf 'gr\\303\\274n\\n'; echo err >&2; exit 3"))
    result = host.run(text, timeout_s=30)
    assert (result.exit_code, result.stdout, result.stderr) == (3, "grün\n".encode(), b"err\n")
    host.put(f"{tmp_path}/file", "grün".encode())
    assert host.read(f"{tmp_path}/file") == "grün".encode()


def test_include_and_match_lead_to_the_host(sshd: Sshd, open_ssh, tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "lab").write_text(f"Host gpu\n HostName 127.0.0.1\n Port {sshd.port}\n")
    config = tmp_path / ".ssh" / "config"
    config.write_text(
        f"Include lab\nMatch originalhost gpu\n IdentityFile {sshd.user_key}\n"
        f" UserKnownHostsFile {sshd.home}/.ssh/known_hosts\nMatch all\n ServerAliveInterval 30\n"
    )
    host = open_ssh(sshd, "gpu", home=tmp_path, key_files=(), known_hosts=())
    assert host.run(HELLO, timeout_s=30).text == "hello\n"


def test_an_account_that_runs_no_commands(serve, open_ssh) -> None:
    host = open_ssh(serve("ForceCommand echo This account is not available; exit 1"))
    with pytest.raises(
        HostError, match=r"login shell did not run our command \(exit code 1\).*not available"
    ):
        host.run(HELLO, timeout_s=30)


def test_too_many_sessions(serve, open_ssh) -> None:
    host = open_ssh(serve("MaxSessions 0"))
    with pytest.raises(HostError, match="MaxSessions"):
        host.run(HELLO, timeout_s=30)


def test_a_lost_connection_is_opened_again(serve, open_ssh) -> None:
    server = serve()
    host = open_ssh(server)
    for _ in range(3):
        assert host.run(Command(("echo", "hello")), timeout_s=30).ok
        server.stop()
        server.start()


def test_a_server_that_stays_away(serve, open_ssh) -> None:
    server = serve()
    host = open_ssh(server, reconnect_s=0.5)
    host.run(HELLO, timeout_s=30)
    server.stop()
    with pytest.raises(RemoteError, match=r"refused.*tried again for 0\.5 s; was about to run: echo hello"):
        host.run(HELLO, timeout_s=30)
    server.start()
    assert host.run(HELLO, timeout_s=30).ok


def cut_once(server: Sshd, fifo: Path) -> threading.Thread:
    """Restarts the server as soon as a command has opened the fifo."""

    def cut() -> None:
        fifo.read_bytes()
        server.stop()
        server.start()

    thread = threading.Thread(target=cut)
    thread.start()
    return thread


@pytest.mark.parametrize("repeatable", [False, True])
def test_cut_during_a_command(serve, open_ssh, tmp_path: Path, repeatable: bool) -> None:
    """Only what does no harm twice is run twice."""
    server, fifo, log = serve(), tmp_path / "fifo", tmp_path / "log"
    host = open_ssh(server)
    host.run(Command(("mkfifo", str(fifo))), timeout_s=30)
    text = 'echo $$ >>"$2"; [ ! -p "$1" ] || { mv "$1" "$1.used"; : >"$1.used"; exec sleep 1000; }; echo done'
    command = Command(("sh", "-c", text, "sh", str(fifo), str(log)), repeatable=repeatable)
    thread = cut_once(server, fifo)
    if repeatable:
        assert host.run(command, timeout_s=60).text == "done\n"
    else:
        with pytest.raises(RemoteError, match="not known how far it came: sh -c"):
            host.run(command, timeout_s=60)
    thread.join()
    pids = [int(line) for line in log.read_text().splitlines()]
    assert len(pids) == 1 + repeatable
    # What is run again is first stopped; what is not goes on, as the message says.
    assert (name_of(pids[0]) == "sleep") is not repeatable
    if not repeatable:
        os.kill(pids[0], signal.SIGKILL)


def test_a_connection_that_is_dead_without_saying_so(sshd: Sshd, open_ssh, tmp_path: Path) -> None:
    wire = Wire(sshd.port)
    known_hosts = wire.known_hosts(sshd, tmp_path / "known_hosts")
    host = open_ssh(
        sshd, f"127.0.0.1:{wire.port}", known_hosts=(known_hosts,), keepalive_s=0.2, dead_after_s=0.5
    )
    try:
        assert host.run(HELLO, timeout_s=30).ok
        wire.black_hole()
        wire.renew()
        # Without the sign of life this would wait for its own time-out and fail.
        assert host.run(HELLO, timeout_s=60).text == "hello\n"
    finally:
        host.close()
        wire.close()
