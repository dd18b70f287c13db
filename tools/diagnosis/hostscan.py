"""Runs on the log's own host, under Python 3.9 with nothing installed: prints the telling lines of a log.

Output: one JSON object a line; first {"total": lines, "size": bytes}, then {"no": number, "text": line}.
"""

import json
import sys
from collections import deque
from collections.abc import Iterable

HEAD_BYTES, TAIL_BYTES = 150_000, 350_000
HEAD_LINES, TAIL_LINES = 600, 2500
BEFORE, AFTER = 30, 90
WIDE, CAP = 4, 40
NARROW_BEFORE, NARROW_AFTER = 1, 4
LONGEST = 4000
WORDS = tuple(
    b"Traceback|rror:|Error|ERROR|xception|CRITICAL|FATAL|fatal| failed|Failed|ssert"
    b"|out of memory|Out of memory"
    b"|Not enough|No available|nable to |annot |imeout|timed out|illed|No space|NCCL WARN|Xid|in use|refused"
    b"|not supported|denied|ready to roll|startup complete|listening on|Load weight|loading model"
    b"|Model loading took|KV Cache|KV cache size|Memory pool end|apture |apturing"
    b"|server_args=|non-default args"
    b"|sigquit|SIGQUIT|missing|mismatch|corrupt|insufficient|No module|undefined symbol|No such file"
    b'|leak detected|NaN| HTTP/1.1" 5|via P2P'.split(b"|")
)
"""Words of nearly every message worth reading; one that is too common in a log is dropped after CAP hits."""
ORDINARY = (b"Decode batch", b"Prefill batch", b'" 200', b"Avg prompt throughput", b" I slot ")
"""Marks of lines that are printed for every step or request: passed over, which makes the scan fast."""


class Windows:
    """Lines to send, up to a limit of bytes: number to text."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self.lines: dict[int, bytes] = {}

    def add(self, number: int, text: bytes) -> bool:
        """Keep a line while the limit allows; False when it is reached."""
        if number in self.lines:
            return True
        text = text.rstrip(b"\r\n")[:LONGEST]
        if self.used + len(text) + 40 > self.limit:
            return False
        self.used += len(text) + 40
        self.lines[number] = text
        return True


class Search:
    """Looks for the words and keeps what stands around them."""

    def __init__(self, limit: int) -> None:
        self.windows = Windows(limit)
        self.hits = dict.fromkeys(WORDS, 0)
        self.active = list(WORDS)
        self.recent: deque[tuple[int, bytes]] = deque(maxlen=BEFORE)
        self.keep_until = 0

    def take(self, number: int, line: bytes) -> None:
        """Look at the next line."""
        if not any(mark in line for mark in ORDINARY):
            self.keep_until = max(self.keep_until, self._found(number, line))
        if number <= self.keep_until:
            self.windows.add(number, line)
        self.recent.append((number, line[:LONGEST]))

    def _found(self, number: int, line: bytes) -> int:
        """The number of the last line to keep because of this one; 0 when it holds no word."""
        found = [word for word in self.active if word in line]
        if not found:
            return 0
        for word in found:
            self.hits[word] += 1
            if self.hits[word] >= CAP:
                self.active.remove(word)
        wide = min(self.hits[word] for word in found) <= WIDE
        for earlier, text in list(self.recent)[-(BEFORE if wide else NARROW_BEFORE) :]:
            self.windows.add(earlier, text)
        return number + (AFTER if wide else NARROW_AFTER)


def scan(stream: Iterable[bytes], limit: int) -> tuple[int, int, dict[int, bytes]]:
    """Total lines, total bytes, and the kept lines by number: at most about `limit` bytes of them."""
    head, search = Windows(HEAD_BYTES), Search(max(0, limit - HEAD_BYTES - TAIL_BYTES))
    last: deque[bytes] = deque(maxlen=TAIL_LINES)
    number = size = 0
    for line in stream:
        number += 1
        size += len(line)
        last.append(line[: 2 * LONGEST])
        if number <= HEAD_LINES:
            head.add(number, line)
        search.take(number, line)
    return number, size, {**search.windows.lines, **head.lines, **tail(last, number).lines}


def tail(last: "deque[bytes]", total: int) -> Windows:
    """The last lines, the very last first, while they fit."""
    windows = Windows(TAIL_BYTES)
    for offset, text in enumerate(reversed(last)):
        if not windows.add(total - offset, text):
            break
    return windows


def main(path: str, limit: int) -> None:
    """Scan the file and print what was kept."""
    with open(path, "rb") as stream:  # noqa: PTH123 - runs alone on a host
        total, size, lines = scan(stream, limit)
    sys.stdout.write(json.dumps({"total": total, "size": size}) + "\n")
    for number in sorted(lines):
        text = lines[number].decode("utf-8", "replace")
        sys.stdout.write(json.dumps({"no": number, "text": text}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
