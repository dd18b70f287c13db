"""A real HTTP server whose every answer a test writes down, byte by byte."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

CLOSE, HANG = object(), object()
"""Instead of bytes: end the connection; say nothing more until the server stops."""

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Received(NamedTuple):
    """One request, and how many came before it on any connection."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: Any


Script = Callable[[Received], Iterable[Any]]


def plain(status: int, body: str, kind: str = "application/json", extra: str = "") -> list[bytes]:
    """A whole answer with a length."""
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{extra}\r\n"
    return [(head + body).encode()]


def chunk(text: str) -> bytes:
    """One HTTP chunk."""
    return f"{len(text.encode()):x}\r\n{text}\r\n".encode()


def events(*objects: Any, done: bool = True) -> list[bytes]:
    """A chunked event stream of JSON objects, one chunk each."""
    parts = [chunk(f"data: {json.dumps(o, separators=(',', ':'))}\n\n") for o in objects]
    return [HEAD, *parts, *([chunk("data: [DONE]\n\n"), b"0\r\n\r\n"] if done else [])]


def completion(tokens: int, *, prompt: int = 8) -> list[Any]:
    """The events of /v1/completions for that many tokens."""
    pieces = [{"choices": [{"index": 0, "text": " the", "finish_reason": None}]} for _ in range(tokens)]
    finish = {"choices": [{"index": 0, "text": "", "finish_reason": "length"}]}
    return [*pieces, finish, {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": tokens}}]


class ScriptedServer:
    """Answers each request as the script says; one thread a connection."""

    def __init__(self, script: Script, *, tls: ssl.SSLContext | None = None) -> None:
        self._script, self._tls = script, tls
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"
        self.received: list[Received] = []
        self._lock, self._over = threading.Lock(), threading.Event()

    def __enter__(self) -> "ScriptedServer":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._listener.close()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            stream = self._tls.wrap_socket(connection, server_side=True) if self._tls else connection
            with stream, stream.makefile("rb") as reader:
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while self._one(stream, reader):
                    pass
        except OSError:
            connection.close()

    def _one(self, stream: socket.socket, reader: Any) -> bool:
        line = reader.readline().decode()
        if not line.strip():
            return False
        method, path = line.split(" ")[:2]
        headers = {}
        while (field := reader.readline().decode().strip()) != "":
            name, _, value = field.partition(":")
            headers[name.lower()] = value.strip()
        length = int(headers.get("content-length", 0))
        body = json.loads(reader.read(length)) if length else None
        with self._lock:
            request = Received(len(self.received), method, path, headers, body)
            self.received.append(request)
        for action in self._script(request):
            if action is CLOSE:
                return False
            if action is HANG:
                self._over.wait(60)
                return False
            stream.sendall(action)
        return True
