"""A small server that behaves as its arguments say, and hosts to run it on."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from parts.sshd import Sshd, free_port

from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.processes import find_tagged, reap
from moeagent.tools.hosts.protocol import Command, Host
from moeagent.tools.hosts.ssh import SshHost
from moeagent.tools.server.lifecycle import ServerHandle, start_server

SERVER = """
import http.server, sys, time
port, *words = sys.argv[1:]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
    def log_message(self, *args):
        pass
for word in words:
    if word == "hang":
        time.sleep(1000)
    elif word == "die":
        sys.exit(7)
    elif word == "listen":
        server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
    else:
        print(word, flush=True)
server.serve_forever()
"""


@pytest.fixture(params=["local", pytest.param("ssh", marks=pytest.mark.part("sshd"))])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    """Each test runs on both kinds of host."""
    if request.param == "local":
        yield LocalHost()
        return
    server = Sshd(tmp_path / "sshd").start()
    connected = SshHost(server.spec, server.settings())
    yield connected
    connected.close()
    server.stop()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[str]:
    """A run id of this test alone; its servers are gone afterwards."""
    run = f"test-{os.getpid()}-{tmp_path.name}"
    yield run
    reap(LocalHost(), find_tagged(LocalHost(), run), grace_s=0)


@pytest.fixture
def launch(host: Host, run: str, tmp_path: Path) -> Callable[..., ServerHandle]:
    """Starts the server with these words as its script."""

    def start(*words: str, port: int = 0) -> ServerHandle:
        port = port or free_port()
        command = Command((sys.executable, "-c", SERVER, str(port), *words))
        return start_server(host, command, run=run, launch="L1", folder=f"{tmp_path}/L1", port=port)

    return start
