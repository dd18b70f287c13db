"""The pages and their addresses."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Template
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from moeagent.agent.findings_index import STORE
from moeagent.agent.serve import pages
from moeagent.agent.serve.guard import Door, Guard
from moeagent.agent.serve.now import now
from moeagent.agent.serve.search import Wanted, window
from moeagent.agent.serve.seen import Seen
from moeagent.agent.serve.shelf import Kept, Shelf
from moeagent.agent.show.curves import Curve, curves
from moeagent.agent.show.html.templating import environment
from moeagent.agent.show.text import SIMULATED
from moeagent.memory.errors import InputError, MoeagentError
from moeagent.memory.findings.query import Filters, find
from moeagent.memory.findings.store import FindingsStore
from moeagent.memory.records import VerdictKind, fingerprint
from moeagent.memory.run_view import RunView

STATIC = {
    "htmx.js": ("moeagent.agent.serve", "static/htmx-2.0.11.min.js", "text/javascript"),
    "report.css": ("moeagent.agent.show.html", "templates/style.css", "text/css"),
    "serve.css": ("moeagent.agent.serve", "static/serve.css", "text/css"),
    "icon.svg": ("moeagent.agent.serve", "static/icon.svg", "image/svg+xml"),
}
KEPT_DRAWINGS = 8
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
MOST_FINDINGS = 200


def build(root: Path, door: Door) -> Starlette:
    """The whole application over one runs folder."""
    site = Site(root)
    return Starlette(
        routes=site.routes(),
        middleware=[Middleware(Guard, door=door)],
        exception_handlers={HTTPException: site.missing, MoeagentError: site.unreadable},
    )


class Site:
    """Answers each address; its methods run in Starlette's threads."""

    def __init__(self, root: Path) -> None:
        self._shelf = Shelf(root)
        self._store = root / STORE
        self._drawn: Kept[str] = Kept(KEPT_DRAWINGS)
        """Reports and pictures: matplotlib draws one at a time."""
        self._templates = environment("moeagent.agent.serve")
        self._templates.globals |= {"address": pages.address, "simulated": SIMULATED}

    def routes(self) -> list[Route]:
        """Every address that there is."""
        return [
            Route("/", self.runs),
            Route("/findings", self.findings),
            Route("/runs/{run}", self.run),
            Route("/runs/{run}/log", self.log),
            Route("/runs/{run}/report", self.report),
            Route("/runs/{run}/hypotheses/{hypothesis}", self.hypothesis),
            Route("/runs/{run}/launches/{launch}/log", self.server_log),
            Route("/static/{name}", static),
        ]

    def runs(self, request: Request) -> Response:
        """The list of runs."""
        stamp = self._shelf.stamps()
        if _unchanged(request, stamp):
            return Response(status_code=204)
        return self._page(request, "runs", rows=self._shelf.rows(), root=str(self._shelf.root), stamp=stamp)

    def run(self, request: Request) -> Response:
        """How one run stands; asks for itself again while the page is open."""
        seen = self._seen(request)
        if _unchanged(request, seen.moment):
            return Response(status_code=204)
        found = curves(seen.view) if seen.view else ()
        picture, legend = self._picture(seen, pages.drawn(found))
        content = pages.overview(seen, found)
        content |= {"seen": seen, "now": now(seen), "picture": picture, "legend": legend}
        return self._page(request, "run", **content)

    def log(self, request: Request) -> Response:
        """The hypothesis log of a run, narrowed to what was asked for."""
        seen = self._seen(request)
        asked = request.query_params
        wanted = Wanted(*(asked.get(name, "").strip() for name in ("q", "verdict", "flag")))
        return self._page(request, "log", seen=seen, **pages.log(seen, wanted))

    def report(self, request: Request) -> Response:
        """The findings report, as `moeagent report --html` writes it."""
        from moeagent.agent.show.html.page import page

        seen = self._seen(request)
        view = _readable(seen)
        home = pages.address("runs", seen.folder.id)
        text = self._drawn.get(f"report {view.run}", seen.stamp, lambda: page(seen.folder, view, home=home))
        return HTMLResponse(text, headers={"Content-Security-Policy": REPORT_POLICY})

    def hypothesis(self, request: Request) -> Response:
        """One hypothesis whole."""
        seen = self._seen(request)
        view = _readable(seen)
        name = request.path_params["hypothesis"]
        whole = pages.whole(seen, view, name)
        if whole is None:
            raise HTTPException(404, f"run {view.run} has no hypothesis {name!r}")
        return self._page(request, "hypothesis", seen=seen, whole=whole)

    def server_log(self, request: Request) -> Response:
        """A part of the log of one launch."""
        seen = self._seen(request)
        view = _readable(seen)
        name = request.path_params["launch"]
        launch = next((x for x in view.ledger.launches if x.id == name), None)
        if launch is None or launch.log is None:
            raise HTTPException(404, f"run {view.run} keeps no log of a launch {name!r}")
        asked = request.query_params
        around = int(line) if (line := asked.get("line", "")).isdecimal() and len(line) < 10 else None
        find_text = asked.get("find", "")
        shown = window(seen.folder.text(launch.log), around, find_text)
        cause = launch.diagnosis.line_no if launch.diagnosis else None
        return self._page(
            request,
            "server_log",
            seen=seen,
            launch=launch,
            log=shown,
            find=find_text,
            around=around,
            cause=cause,
        )

    def findings(self, request: Request) -> Response:
        """Full-text search and filters over what all runs learnt."""
        asked = {name: request.query_params.get(name, "").strip() for name in pages.FINDING_FIELDS}
        verdict = VerdictKind(asked["verdict"]) if asked["verdict"] in list(VerdictKind) else None
        filters = Filters(**{**asked, "verdict": verdict}, limit=MOST_FINDINGS + 1)
        rows = self._ask(filters)
        return self._page(
            request,
            "findings",
            asked=asked,
            verdicts=tuple(VerdictKind),
            findings=pages.findings_table(rows[:MOST_FINDINGS], set(self._shelf.names())),
            count=len(rows[:MOST_FINDINGS]),
            more=len(rows) > MOST_FINDINGS,
        )

    def missing(self, request: Request, error: Exception) -> Response:
        """There is no such thing here."""
        assert isinstance(error, HTTPException)
        return self._problem(request, error.detail, error.status_code)

    def unreadable(self, request: Request, error: Exception) -> Response:
        """It is here and cannot be read."""
        return self._problem(request, str(error), 409)

    def _problem(self, request: Request, told: str, status: int) -> Response:
        return self._page(request, "problem", status=status, told=told)

    def _seen(self, request: Request) -> Seen:
        name = request.path_params["run"]
        seen = self._shelf.run(name)
        if seen is None:
            near = self._shelf.near(name)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise HTTPException(404, f"there is no run {name!r} in {self._shelf.root}{hint}")
        return seen

    def _picture(self, seen: Seen, found: Sequence[Curve]) -> tuple[Markup | None, list[Any]]:
        """Throughput against concurrency, with its legend."""
        from moeagent.agent.show import plots

        if not found:
            return None, []
        stamp = fingerprint(repr(found))
        svg = self._drawn.get(f"picture {seen.folder.id}", stamp, lambda: plots.throughput(found))
        return Markup(svg), list(plots.series_classes(found))  # noqa: S704 - drawn by matplotlib, escaped

    def _ask(self, filters: Filters) -> list[dict[str, Any]]:
        """Rows of the store; without one, none."""
        if not self._store.is_file():
            return []
        try:
            with closing(FindingsStore(self._store)) as store:
                return find(store, filters)
        except sqlite3.Error as error:
            raise InputError(
                f"{self._store} cannot be asked ({error}): `moeagent findings --rebuild` makes it again"
            ) from None

    def _page(self, request: Request, name: str, status: int = 200, **content: Any) -> Response:
        """The whole page, or only its changing part where the page itself asks for it."""
        part = "part" if "hx-request" in request.headers and name != "problem" else "page"
        template: Template = self._templates.get_template(f"{name}.{part}.jinja")
        text = template.render(path=request.scope["path"], **content)
        return HTMLResponse(text.encode("utf-8", "replace"), status, {"Vary": "HX-Request"})


def static(request: Request) -> Response:
    """One of the few files that the pages use."""
    name = request.path_params["name"]
    if name not in STATIC:
        raise HTTPException(404, f"there is no file {name!r}")
    package, path, kind = STATIC[name]
    data = files(package).joinpath(path).read_bytes()
    return Response(data, media_type=kind, headers={"Cache-Control": "max-age=600"})


def _unchanged(request: Request, stamp: str) -> bool:
    return "hx-request" in request.headers and request.query_params.get("stamp") == stamp


def _readable(seen: Seen) -> RunView:
    if seen.view is None:
        raise InputError(f"run {seen.folder.id} cannot be read: {seen.problem}")
    return seen.view
