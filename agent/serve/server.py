"""Listening: an address of our own, a token where others can reach it, and the server behind it."""

import secrets
import socket
from pathlib import Path

from moeagent.agent.serve.guard import Door, is_loopback
from moeagent.memory.errors import InputError


def listen(host: str, port: int, *, with_token: bool) -> tuple[socket.socket, Door]:
    """A listening socket and its door. Port 0 takes a free one; outside loopback there is always a token.

    Raises InputError when the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {host}, port {port}: {error}. Choose another with --port, 0 for any"
        ) from None
    token = secrets.token_urlsafe(24) if with_token or not is_loopback(host) else None
    return listening, Door(host, listening.getsockname()[1], token)


def address_of(door: Door) -> str:
    """What to open in a browser; with the token, which is told nowhere else."""
    host = f"[{door.host}]" if ":" in door.host else door.host
    token = f"?token={door.token}" if door.token else ""
    return f"http://{host}:{door.port}/{token}"


def serve(root: Path, listening: socket.socket, door: Door) -> None:
    """Answer until Ctrl-C or SIGTERM."""
    import uvicorn

    from moeagent.agent.serve.site import build

    config = uvicorn.Config(
        build(root, door), log_level="warning", access_log=False, server_header=False, lifespan="off"
    )
    uvicorn.Server(config).run(sockets=[listening])
