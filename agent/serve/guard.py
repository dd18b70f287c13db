"""Who may ask, and how: the page's own address, reading only, and a token where there is one."""

import hmac
import ipaddress
import socket
from dataclasses import dataclass
from functools import cache
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Scripts come from this server only and never stand in a page; pictures carry their own inline styles."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": PAGE_POLICY,
}


@dataclass(frozen=True)
class Door:
    """Where the page listens, and what opens it."""

    host: str
    port: int
    token: str | None = None
    """None: everybody who reaches the address may read."""

    @property
    def cookie(self) -> str:
        """Browsers keep cookies by host alone; the port keeps two servers apart."""
        return f"moeagent_{self.port}"

    def answers_to(self, name: str) -> bool:
        """Whether a Host header may name us so.

        A page of a stranger can have its own name resolved to our address (DNS rebinding). It cannot do so
        with an IP address, `localhost`, or the names of this machine.
        """
        name = name.lower().rstrip(".")
        if self.host and name == self.host.lower():
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return name == "localhost" or (not is_loopback(self.host) and name in _own_names())
        return address.is_loopback or not is_loopback(self.host)

    def opens(self, request: Request) -> bool:
        """Whether the request carries the token, in the cookie or in an Authorization header."""
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        return self.fits(request.cookies.get(self.cookie, "")) or self.fits(bearer)

    def fits(self, offered: str) -> bool:
        """Compare in a time that tells nothing about the token."""
        return self.token is None or hmac.compare_digest(self.token.encode(), offered.encode())


class Guard:
    """Lets through what the door allows, and puts the protecting headers on every answer."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a refused request here; hand on the others."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refusal(Request(scope))
        await (refused or self._app)(scope, receive, _with_headers(send))

    def _refusal(self, request: Request) -> Response | None:
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("this page is read only\n", 405, {"Allow": "GET, HEAD"})
        if not self._door.answers_to(_host_name(request.headers.get("host", ""))):
            return PlainTextResponse(
                "this server does not answer to that name: use its IP address or localhost\n", 421
            )
        if self._door.token is None:
            return None
        return _take_token(request, self._door) or self._locked(request)

    def _locked(self, request: Request) -> Response | None:
        if self._door.opens(request):
            return None
        told = "open the address with ?token=... that `moeagent serve` printed when it started\n"
        return PlainTextResponse(told, 401, {"WWW-Authenticate": "Bearer"})


def _take_token(request: Request, door: Door) -> Response | None:
    """Put a right token of the address into a cookie, and go on without it in the address."""
    offered = request.query_params.get("token")
    if offered is None or not door.fits(offered):
        return None
    left = [(k, v) for k, v in parse_qsl(request.url.query, keep_blank_values=True) if k != "token"]
    path = "/" + request.scope["path"].lstrip("/")
    response = RedirectResponse(f"{path}?{urlencode(left)}" if left else path, 303)
    response.set_cookie(door.cookie, offered, httponly=True, samesite="strict")
    return response


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@cache
def _own_names() -> frozenset[str]:
    return frozenset({socket.gethostname().lower(), socket.getfqdn().lower()})


def _host_name(header: str) -> str:
    """A Host header without its port: `gpu1:8390`, `[::1]:8390`."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
