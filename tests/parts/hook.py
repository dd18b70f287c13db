"""A real HTTP server that takes what is posted to it."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@dataclass
class Hook:
    """Answers with each status in turn, then with the last of them."""

    statuses: Sequence[int]
    address: str = ""
    bodies: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def hook(*statuses: int) -> Iterator[Hook]:
    """A server on loopback until the block ends."""
    taken = Hook(statuses or (200,))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = taken.statuses[min(len(taken.bodies), len(taken.statuses) - 1)]
            taken.bodies.append(json.loads(body))
            taken.headers.append(dict(self.headers))
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", f"{taken.address}elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        taken.address = f"http://127.0.0.1:{server.server_port}/T0/secret-path"
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield taken
        finally:
            server.shutdown()
            thread.join()
