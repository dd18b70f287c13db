"""What a wrapper started, found by its tag on the host and stopped there."""

import json
from importlib.resources import files

from pydantic import ValidationError

from moeagent.memory.errors import HostError
from moeagent.memory.records.base import Record
from moeagent.tools.hosts.clock import Clock, SystemClock
from moeagent.tools.hosts.command import Command
from moeagent.tools.hosts.processes import Tag
from moeagent.tools.hosts.protocol import CommandResult, Host
from moeagent.tools.hosts.script import said
from moeagent.tools.hosts.wrappers import Wrapper

FILE = "wrapper"
"""In the folder of a server that was started by one."""
RUNNING = "running"
FIRM_GRACE_S = 20.0
"""How long something that was killed may take to vanish."""
_LOOK_S = 60.0
_POLL_S = 0.3
_KEEP_LOG = 'f=$1; shift; "$@" >"$f.part" 2>&1 && [ -s "$f.part" ] && mv "$f.part" "$f"'
_RECORDS = """
case $1 in '~'/*) base=$HOME/${1#'~/'} ;; *) base=$1 ;; esac
for f in "$base"/*/*/wrapper; do
  [ ! -e "$f" ] || [ -e "${f%/wrapper}/retired" ] || { cat "$f"; echo; }
done"""


class Wrapped(Record):
    """One thing that a wrapper started."""

    id: str
    state: str = RUNNING


class Started(Record):
    """What the file in a server's folder says: enough to find the server with no settings at hand."""

    tag: Tag
    folder: str
    wrapper: Wrapper


class WrappedStop(Record):
    """How a stop through a wrapper went."""

    tag: str
    kind: str
    ids: tuple[str, ...] = ()
    """Found and told to stop."""
    remaining: tuple[str, ...] = ()

    @property
    def gone(self) -> bool:
        """Whether nothing of it is found any more."""
        return not self.remaining


def write_started(host: Host, started: Started) -> None:
    """Before the start, so that nothing can be started that nobody finds again."""
    host.put(f"{started.folder}/{FILE}", started.model_dump_json().encode() + b"\n")


def read_started(host: Host, folder: str) -> Started | None:
    """The file of a folder; None where its server was started without a wrapper."""
    result = host.run(Command(("cat", f"{folder}/{FILE}"), repeatable=True), timeout_s=_LOOK_S)
    return _parse(result.text) if result.ok else None


def find_started(host: Host, base: str) -> list[Started]:
    """Every server below moeagent's folder that a wrapper started and nobody has stopped since."""
    result = host.run(Command(("sh", "-c", _RECORDS, "moeagent", base), repeatable=True), timeout_s=_LOOK_S)
    return [found for line in result.text.splitlines() if (found := _parse(line)) is not None]


def find_wrapped(host: Host, wrapper: Wrapper, tag: str) -> tuple[Wrapped, ...]:
    """What carries exactly this tag, running or not. Raises HostError when the wrapper cannot be asked."""
    result = _tell(host, wrapper, wrapper.declared.find, tag)
    if not result.ok:
        raise HostError(f"{host.name}: {wrapper.kind} cannot say what runs as {tag}: {said(result)}")
    return parse_found(result.text, tag)


def parse_found(text: str, tag: str) -> tuple[Wrapped, ...]:
    """Lines of `id tag [state]`; those of another tag, or of none, are somebody else's."""
    found = []
    for words in map(str.split, text.splitlines()):
        if len(words) >= 2 and words[1] == tag:
            found.append(Wrapped(id=words[0], state=words[2].lower() if len(words) > 2 else RUNNING))
    return tuple(found)


def runs(host: Host, wrapper: Wrapper, tag: str) -> bool:
    """Whether something of this tag runs."""
    return any(each.state == RUNNING for each in find_wrapped(host, wrapper, tag))


def stop_wrapped(
    host: Host, wrapper: Wrapper, tag: str, *, grace_s: float, clock: Clock | None = None
) -> WrappedStop:
    """Ask politely, wait, then end it for good, and look whether it is gone. Only what carries our tag."""
    clock = clock or SystemClock()
    ids = left = find_wrapped(host, wrapper, tag)
    steps = ((wrapper.declared.stop, grace_s, _running), (wrapper.declared.kill, FIRM_GRACE_S, bool))
    for words, wait_s, worth_waiting in steps:
        if not left:
            break
        for each in left if any("{id}" in word for word in words) else left[:1]:
            _tell(host, wrapper, words, tag, id=each.id, grace_s=str(round(grace_s)), wait_s=wait_s)
        deadline = clock.now() + wait_s
        while worth_waiting(left := find_wrapped(host, wrapper, tag)) and clock.now() < deadline:
            clock.sleep(_POLL_S)
    return WrappedStop(
        tag=tag, kind=wrapper.kind, ids=tuple(i.id for i in ids), remaining=tuple(i.id for i in left)
    )


def keep_log(host: Host, wrapper: Wrapper, tag: str, log: str) -> None:
    """The whole output in place of the part that the client wrote before it died, where it can be had."""
    for each in find_wrapped(host, wrapper, tag) if wrapper.declared.logs else ():
        words = wrapper.filled(wrapper.declared.logs, tag=tag, id=each.id)
        host.run(
            Command(("sh", "-c", _KEEP_LOG, "moeagent", log, *words), repeatable=True), timeout_s=_LOOK_S
        )


def _running(left: tuple[Wrapped, ...]) -> bool:
    """What has ended and stays is only removed by the firm step."""
    return any(each.state == RUNNING for each in left)


def _tell(
    host: Host, wrapper: Wrapper, words: tuple[str, ...], tag: str, wait_s: float = 0.0, **values: str
) -> CommandResult:
    script = (files("moeagent.tools.hosts") / "processes.sh").read_text("utf-8")
    argv = wrapper.filled(words, tag=tag, script=script, **values)
    title = f"{wrapper.kind} {argv[1] if len(argv) > 1 else ''} for {tag}"
    return host.run(Command(argv, repeatable=True, title=title), timeout_s=_LOOK_S + wait_s)


def _parse(text: str) -> Started | None:
    try:
        return Started.model_validate(json.loads(text))
    except (ValueError, ValidationError):
        return None
