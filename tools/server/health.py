"""One question to a health endpoint."""

import http.client
from collections.abc import Iterable


def status_of(port: int, path: str, *, timeout_s: float) -> int | None:
    """The HTTP status of a GET on 127.0.0.1, or None when there is no answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def is_healthy(port: int, paths: Iterable[str], *, timeout_s: float) -> bool:
    """Whether the first of the paths that the server knows (not 404) answers 200."""
    for path in paths:
        status = status_of(port, path, timeout_s=timeout_s)
        if status != 404:
            return status == 200
    return False
