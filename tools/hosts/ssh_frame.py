"""How a command is carried over SSH so that nothing but its own words come back.

The exec request is one constant line that any login shell understands. The command travels as standard
input, so it needs no second quoting and shows in no process list. Its output stands between two marks that
nobody can guess; what a login shell prints around them is dropped.
"""

import secrets
from dataclasses import dataclass, field

from moeagent.tools.hosts.command import Command, encode, quote

# The report of a killed child goes to the shell's own standard error, which is why that is set aside.
_WRAPPER = """\
read -r line </proc/$$/stat
set -- ${{line##*) }}
printf '%s\\n' "{mark}<$$ ${{20}} $3"
printf '%s\\n' '{mark}<' >&2
exec 3>&2 2>/dev/null
({command}) 2>&3 3>&-
code=$?
printf '%s\\n' '{mark}>' >&3
printf '%s\\n' "{mark}>$code"
"""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A command made ready to travel."""

    request: str
    """For the exec request."""
    script: bytes
    """First on standard input; the command's own input follows."""
    mark: bytes


def wrap(command: Command) -> Envelope:
    """Make a command ready."""
    mark = f"moeagent-{secrets.token_hex(16)}"
    script = encode(_WRAPPER.format(mark=mark, command=quote(command)))
    # dd reads byte by byte, so that it leaves the rest of the input to the command.
    request = f"exec sh -c 'eval \"$(dd bs=1 count={len(script)} 2>/dev/null)\"'"
    return Envelope(request, script, mark.encode())


@dataclass(slots=True)
class Unwrapper:
    """Collects one stream and finds what lies between the marks."""

    mark: bytes
    limit: int
    """Bytes of output above which `too_long` is set and the rest dropped."""
    noise: bytes = b""
    """What came before the first mark."""
    head: bytes | None = None
    """What follows the first mark on its line; None until it was seen."""
    tail: bytes | None = None
    """What follows the second mark, up to `done`; None until it was seen."""
    too_long: bool = False
    _buffer: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        if self.tail is not None:
            self.tail += data
            return
        searched = len(self._buffer)
        self._buffer += data
        if self.head is None:
            self._find_head()
            searched = 0
        if self.head is not None:
            self._find_tail(searched)
        self.too_long = self.too_long or len(self._buffer) > self.limit
        if self.too_long:
            del self._buffer[: -2 * len(self.mark)]

    @property
    def done(self) -> bool:
        """True when all that the command printed has come."""
        return self.tail is not None and b"\n" in self.tail

    @property
    def last_word(self) -> bytes:
        """What follows the second mark on its line; what a login shell says afterwards is dropped."""
        return (self.tail or b"").partition(b"\n")[0]

    @property
    def output(self) -> bytes:
        """What the command printed so far."""
        return bytes(self._buffer)

    def _find_head(self) -> None:
        start = self._buffer.find(self.mark + b"<")
        end = self._buffer.find(b"\n", start) if start >= 0 else -1
        if end < 0:
            return
        self.noise = bytes(self._buffer[:start])
        self.head = bytes(self._buffer[start + len(self.mark) + 1 : end])
        del self._buffer[: end + 1]

    def _find_tail(self, searched: int) -> None:
        end = self._buffer.find(self.mark + b">", max(0, searched - len(self.mark) - 1))
        if end >= 0:
            self.tail = bytes(self._buffer[end + len(self.mark) + 1 :])
            del self._buffer[end:]
