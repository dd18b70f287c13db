"""Plain requests outside the measurement, and TLS as the job wants it."""

from __future__ import annotations

import http.client
import ssl
from urllib.parse import urlsplit

from moeagent.tools.load.generator.request import Job


def tls_context(job: Job) -> ssl.SSLContext:
    """TLS as asked: verified against the system's or the given authorities unless verify_tls is false."""
    context = ssl.create_default_context(cafile=job.get("ca_file"))
    if not job.get("verify_tls", True):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def call(job: Job, method: str, path: str, timeout_s: float = 10.0) -> tuple[int, bytes]:
    """One plain request outside the measurement; OSError or http.client.HTTPException when it fails."""
    parts = urlsplit(job["url"])
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "https":
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, port, timeout=timeout_s, context=tls_context(job)
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        connection.request(method, path, headers=job["headers"])
        response = connection.getresponse()
        return response.status, response.read(1 << 20)
    finally:
        connection.close()


def flush(job: Job) -> str:
    """Empty the server's prefix cache; says what happened."""
    if not job.get("flush"):
        return ""
    try:
        status, _ = call(job, "POST", job["flush"])
    except (OSError, http.client.HTTPException) as error:
        return f"flush failed: {error}"
    return "flushed" if status == 200 else f"flush answered {status}"
