"""An OpenAI-compatible endpoint on loopback that answers from a script: for trials without a model."""

import json
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from moeagent.memory.records import Record
from moeagent.tools.llm.client import PROBE_TEXT
from moeagent.tools.llm.records import ResponseFormat


class Reply(Record):
    """A completion."""

    content: str = ""
    reasoning: str | None = None
    finish_reason: str = "stop"
    usage: dict[str, int] | None = None

    def body(self, model: str) -> bytes:
        """The response body of POST /chat/completions."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.reasoning is not None:
            message["reasoning_content"] = self.reasoning
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        data: dict[str, Any] = {"id": "scripted", "object": "chat.completion", "model": model}
        data |= {"choices": [choice], **({"usage": self.usage} if self.usage else {})}
        return json.dumps(data).encode()


class Raw(Record):
    """Any status and body."""

    status: int = 200
    body: str = ""


class Silence(Record):
    """Takes the request and never answers; with drip, sends a byte now and then and never ends."""

    drip_every_s: float | None = None


class HangUp(Record):
    """Closes the connection without an answer."""


Step = Reply | Raw | Silence | HangUp


class ScriptedEndpoint:
    """A context manager: serves the steps in order, then the last one for ever."""

    def __init__(
        self,
        steps: Iterable[Step | str | dict[str, Any]],
        *,
        formats: tuple[ResponseFormat, ...] = ("json_schema", "json_object", "plain"),
        answers_probe: bool = True,
    ) -> None:
        self._steps = [_step(step) for step in steps]
        self._formats, self._answers_probe = formats, answers_probe
        self.requests: list[dict[str, Any]] = []
        """Bodies in the order received, the probe's included."""
        self._given = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def base_url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, body: dict[str, Any]) -> Step:
        """The step for this request."""
        wanted = body.get("response_format", {}).get("type", "plain")
        with self._lock:
            self.requests.append(body)
            if wanted not in self._formats:
                return Raw(status=400, body='{"error": {"message": "response_format is not supported"}}')
            if self._answers_probe and body["messages"][-1]["content"] == PROBE_TEXT:
                return Reply(content='{"ready": true}')
            self._given += 1
            return self._steps[min(self._given, len(self._steps)) - 1]

    def wait_for_end(self, seconds: float | None = None) -> bool:
        """Whether the endpoint is closing, after waiting at most this long."""
        return self._closing.wait(seconds)


def _step(step: Step | str | dict[str, Any]) -> Step:
    if isinstance(step, dict):
        return Reply(content=json.dumps(step))
    return Reply(content=step) if isinstance(step, str) else step


def _handler_of(endpoint: ScriptedEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length))
            match endpoint.answer(body):
                case Reply() as reply:
                    self._send(200, reply.body(body.get("model", "")))
                case Raw(status=status, body=text):
                    self._send(status, text.encode())
                case Silence(drip_every_s=drip):
                    self._never_end(drip)
                case HangUp():
                    self.close_connection = True

        def _send(self, status: int, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _never_end(self, drip_every_s: float | None) -> None:
            if drip_every_s is not None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
            while not endpoint.wait_for_end(drip_every_s):
                try:
                    self.wfile.write(b" ")
                    self.wfile.flush()
                except OSError:
                    return

        def log_message(self, format: str, *args: Any) -> None:
            return

    return Handler
