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
        deadline = threading.Timer(hop.dead_after_s, connection.close)
        deadline.daemon = True
        deadline.start()
        try:
            transport.global_request("keepalive@openssh.com", wait=True)
        except (SSHException, OSError, EOFError):
            return
        finally:
            deadline.cancel()
        transport.join(hop.keepalive_s)
