"""A small real HTTP server with /v1/completions whose answers depend on the size of its batch."""

import json
import random
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate

import pytest

Answer = Callable[[str, int], object]
"""(prompt, batch size) to a JSON body, or to (status, bytes) sent as they are."""
PROMPTS = [f"Question {i}: what comes next?" for i in range(8)]
WAVES = (*[1] * 8, 8, 64, 256)
"""How eight prompts at batch sizes 1, 8, 64 and 256 arrive."""

VOCABULARY = ("the", "cat", "sat", "on", "a", "red", "mat", "and", "saw", "one", "dog", "run", "by")


class BatchingServer(ThreadingHTTPServer):
    """Answers a wave when all of it has arrived, as one batch."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked: list[dict[str, object]] = []
        self.arrived = threading.Condition()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def batch_of_next(self, body: dict[str, object]) -> int:
        """Waits for the wave that this request belongs to; its size."""
        with self.arrived:
            self.asked.append(body)
            self.arrived.notify_all()
            number = len(self.asked)
            full, wave = next((f, w) for f, w in zip(accumulate(WAVES), WAVES, strict=True) if number <= f)
            self.arrived.wait_for(lambda: len(self.asked) >= full, timeout=60)
            return wave


class _Handler(BaseHTTPRequestHandler):
    server: BatchingServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = self.server.answer(body["prompt"], self.server.batch_of_next(body))
        status, data = found if isinstance(found, tuple) else (200, json.dumps(found).encode())
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], BatchingServer]]:
    running: list[BatchingServer] = []

    def start(answer: Answer) -> BatchingServer:
        server = BatchingServer(answer)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
        running.append(server)
        return server

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def right_words(prompt: str, count: int = 24) -> list[str]:
    draw = random.Random(prompt)
    return [draw.choice(VOCABULARY) for _ in range(count)]


def completion(words: list[str], logprob: float = -0.3) -> dict[str, object]:
    return {"choices": [{"text": " ".join(words), "logprobs": {"token_logprobs": [logprob] * len(words)}}]}


@pytest.fixture(scope="session")
def prompts() -> list[str]:
    return PROMPTS


@pytest.fixture
def right() -> Answer:
    """Right, with the usual parting of ways late in a fifth of the answers of large batches."""

    def answer(prompt: str, batch: int) -> object:
        words = right_words(prompt)
        if batch > 8 and random.Random(f"{prompt}{batch}").random() < 0.2:
            words[16:] = right_words(prompt + "another way", 8)
        return completion(words)

    return answer


@pytest.fixture
def garbage_from_64(right: Answer) -> Answer:
    """A kernel that returns garbage from batch 64 upwards."""

    def answer(prompt: str, batch: int) -> object:
        return completion(right_words(f"{prompt}{batch}")) if batch >= 64 else right(prompt, batch)

    return answer
