"""A real `moeagent serve` process over a runs folder, and ways to ask it."""

import http.client
import json
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.command import start


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str


@dataclass(frozen=True)
class Served:
    """A server that runs; `address` is what it printed."""

    address: str
    port: int
    token: str | None

    def get(self, path: str, *, method: str = "GET", **headers: str) -> Answer:
        """One request as it is given: nothing in the path or the headers is mended."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            response = connection.getresponse()
            return Answer(response.status, dict(response.headers), response.read().decode())
        finally:
            connection.close()


@contextmanager
def served(folder: Path, *options: str) -> Iterator[Served]:
    """`moeagent serve` over folder/runs, until the block ends."""
    process = start(folder, "serve", "--port", "0", "--json", *options)
    try:
        assert process.stdout is not None
        told = ""
        while not told.endswith("}\n"):
            line = process.stdout.readline()
            assert line, told
            told += line
        found = json.loads(told)
        yield Served(found["address"], found["port"], found["token"])
    finally:
        process.send_signal(signal.SIGINT)
        left, _ = process.communicate(timeout=30)
        assert "Traceback" not in left, left
        assert process.returncode == 0, left
