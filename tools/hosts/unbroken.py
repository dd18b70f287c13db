"""Work that a broken connection spoils: done again when the connection broke under it."""

from collections.abc import Callable
from typing import TypeVar

from moeagent.memory.errors import HostError, RemoteError
from moeagent.tools.hosts.protocol import Command, Host

Result = TypeVar("Result")

TRIES = 5
"""A connection that breaks so often under one piece of work will not carry it."""
_LOOK_S = 60.0


def unbroken(
    host: Host, work: Callable[[], Result], doing: str, *, on_break: Callable[[], None] = lambda: None
) -> Result:
    """The result of work during which the connection held.

    `on_break` is called before the work is done again. Raises RemoteError, naming what was being done, when
    the host stays away or the connection breaks each time; errors of the work itself pass while the
    connection holds.
    """
    for _ in range(TRIES):
        before = host.breaks
        try:
            result = work()
        except RemoteError:
            raise
        except HostError:
            if not _broke(host, before):
                raise
        else:
            if not _broke(host, before):
                return result
        on_break()
    raise RemoteError(
        f"{host.name}: the connection broke {TRIES} times in a row while {doing}: see that it is steady, "
        "then resume"
    )


def _broke(host: Host, before: int) -> bool:
    # A call finds out whether the connection is still there, and opens it again where it is not.
    host.run(
        Command(("true",), repeatable=True, title="looking whether it is still there"), timeout_s=_LOOK_S
    )
    return host.breaks != before
