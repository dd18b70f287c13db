"""Getting the message out within a deadline: a program of the user's, a POST with retries."""

import os
import signal
import subprocess
from contextlib import suppress
from urllib.parse import urlsplit

TRY_S = 5.0
"""Longest time of one POST."""
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 5.0
PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Answers after which it is tried again; the others will not change."""
TOLD_CHARS = 200


class NotTold(Exception):  # noqa: N818 - it becomes a warning, never the run's failure
    """Nobody was told; the message says why."""


class _TryAgain(NotTold):
    """The other side may take it a moment later."""


def run_command(command: tuple[str, ...], message: str, deadline_s: float) -> None:
    """Run the program once with the message on its standard input.

    Raises NotTold when it cannot be started, fails, or is not done in time; then its whole group is killed.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise NotTold(f"cannot start: {error}") from None
    with process:
        try:
            _, told = process.communicate(message.encode(), timeout=deadline_s)
        except subprocess.TimeoutExpired:
            raise NotTold(f"was not done after {deadline_s:g} s") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode != 0:
        last = (told.decode("utf-8", "replace").strip().splitlines() or [""])[-1][:TOLD_CHARS]
        raise NotTold(f"exit code {process.returncode}{': ' if last else ''}{last}")


def post(address: str, message: str, deadline_s: float) -> None:
    """POST the message, again after passing errors until the deadline. Raises NotTold."""
    from tenacity import retry, retry_if_exception_type, stop_before_delay, wait_random_exponential

    timeout_s = min(TRY_S, deadline_s / 2)
    attempt = retry(
        retry=retry_if_exception_type(_TryAgain),
        stop=stop_before_delay(deadline_s - timeout_s),
        wait=wait_random_exponential(multiplier=FIRST_WAIT_S, max=LONGEST_WAIT_S),
        reraise=True,
    )
    attempt(_post_once)(address, message, timeout_s)


def _post_once(address: str, message: str, timeout_s: float) -> None:
    import httpx2

    try:
        with httpx2.stream(
            "POST",
            address,
            content=message.encode(),
            headers={"Content-Type": "application/json", "User-Agent": "moeagent"},
            timeout=timeout_s,
            follow_redirects=False,
        ) as answer:
            status = answer.status_code
    except httpx2.TransportError as error:
        raise _TryAgain(f"{type(error).__name__}: {error}"[:TOLD_CHARS]) from None
    except (httpx2.InvalidURL, httpx2.HTTPError) as error:
        raise NotTold(f"{type(error).__name__}: {error}"[:TOLD_CHARS]) from None
    if status in PASSING:
        raise _TryAgain(f"it answered {status}")
    if not 200 <= status < 300:
        raise NotTold(f"it answered {status}")


def host_of(address: str) -> str:
    """What a warning may show of an address: its path may be a secret."""
    return urlsplit(address).hostname or "the webhook"
