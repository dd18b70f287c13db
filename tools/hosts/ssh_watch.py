"""A connection that is dead without saying so is closed, so that whoever waits on it wakes up."""

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moeagent.tools.hosts.ssh_config import Hop
    from moeagent.tools.hosts.ssh_connect import Connection


def watch(connection: "Connection", hop: "Hop") -> None:
    """Ask the host for a sign of life at intervals, in a thread that ends with the connection.

    paramiko sends keep-alive messages but never counts the answers.
    """
    threading.Thread(target=_watch, args=(connection, hop), daemon=True, name="ssh-watch").start()


def _watch(connection: "Connection", hop: "Hop") -> None:
    from paramiko import SSHException

    transport = connection.transport
    while connection.alive():
        answered = threading.Event()
        threading.Thread(target=_close_when_silent, args=(connection, hop, answered), daemon=True).start()
        try:
            transport.global_request("keepalive@openssh.com", wait=True)
        except (SSHException, OSError, EOFError):
            return
        finally:
            answered.set()
        transport.join(hop.keepalive_s)


def _close_when_silent(connection: "Connection", hop: "Hop", answered: threading.Event) -> None:
    """An answer may stand behind much data; only a line through which nothing comes is dead."""
    left_s = hop.dead_after_s
    while not answered.wait(left_s):
        left_s = hop.dead_after_s - connection.silent_s
        if left_s <= 0:
            connection.close()
            return
