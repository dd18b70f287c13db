"""The report's pictures: static SVG whose colours, font and dark mode come from the page's style sheet.

Every picture has a table with the same figures beside it in the report, so each is one image to a screen
reader. Points of hypotheses are links to their place in the page.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from io import StringIO
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator, PercentFormatter

from moeagent.agent.show.curves import Curve, front
from moeagent.agent.show.lineage import Node
from moeagent.memory.records import PredictionScore, VerdictKind

WIDTH_IN, HEIGHT_IN = 4.3, 3.1
"""Close to a phone's width, so that its text is readable there and only grows on a wide screen."""
FEW = 6
"""Candidates that still get a colour each; more of them are drawn alike."""
MANY_NODES = 24
"""Hypotheses of a tree that are all labelled."""
MAX_TREE_IN = 6.0
REFUSED_STEP = 0.5
"""How far below the next step a change lies that was not accepted."""

COLOURS = {
    "--ink": "#010101",
    "--quiet": "#010102",
    "--line": "#010103",
    "--base": "#010104",
    "--best": "#010105",
    "--bad": "#010106",
    "--unsure": "#010107",
    "--c0": "#010110",
    "--c1": "#010111",
    "--c2": "#010112",
    "--c3": "#010113",
    "--c4": "#010114",
    "--c5": "#010115",
    "--surface": "#010120",
}
"""Placeholder colours in the drawing, replaced by the page's variables of these names."""
MARKERS = "sD^vPX"
VERDICT_LOOKS = {
    VerdictKind.IMPROVED: ("--best", "*"),
    VerdictKind.REGRESSED: ("--bad", "v"),
    VerdictKind.BLOCKED: ("--bad", "X"),
    VerdictKind.NEUTRAL: ("--quiet", "o"),
    VerdictKind.NO_OP: ("--quiet", "."),
    VerdictKind.INVALID: ("--unsure", "s"),
    VerdictKind.INCONCLUSIVE: ("--unsure", "D"),
}
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 8.5,
    "axes.edgecolor": COLOURS["--line"],
    "axes.labelcolor": COLOURS["--ink"],
    "text.color": COLOURS["--ink"],
    "xtick.color": COLOURS["--quiet"],
    "ytick.color": COLOURS["--quiet"],
    "grid.color": COLOURS["--line"],
    "axes.grid": True,
    "grid.linewidth": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.axisbelow": True,
}


@contextmanager
def drawing(name: str, height_in: float = HEIGHT_IN) -> Iterator[tuple[Figure, Axes]]:
    """A figure and its axes in the report's look; `name` keeps its ids apart from other pictures."""
    with rc_context({**STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
        yield figure, figure.add_subplot()


def throughput(curves: Sequence[Curve]) -> str:
    """Output tok/s against concurrency, with the range over launches."""
    with drawing("throughput") as (figure, axes):
        for curve, look in _looks(curves):
            xs = [p.concurrency for p in curve.points]
            axes.plot(xs, [p.tok_s for p in curve.points], **look)
            axes.vlines(
                xs, [p.low for p in curve.points], [p.high for p in curve.points], color=look["color"], lw=2.5
            )
        _concurrency_axis(axes, sorted({p.concurrency for c in curves for p in c.points}))
        axes.set_ylabel("output tok/s")
        _plain_numbers(axes)
        return _svg(figure, "throughput", "Output tokens per second against concurrency")


def throughput_against_latency(curves: Sequence[Curve]) -> str:
    """Output tok/s against the median latency of a request, with the Pareto front."""
    with drawing("latency") as (figure, axes):
        for curve, look in _looks(curves):
            shown = [p for p in curve.points if p.latency_s is not None]
            axes.plot([p.latency_s or 0.0 for p in shown], [p.tok_s for p in shown], **look)
        best = [(p.latency_s or 0.0, p.tok_s) for _, p in front(curves)]
        axes.plot(*zip(*best, strict=True), color=COLOURS["--ink"], lw=6, alpha=0.16, solid_capstyle="round")
        axes.set_xlabel("median end-to-end latency of a request, s")
        axes.set_ylabel("output tok/s")
        axes.set_xlim(left=0)
        _plain_numbers(axes)
        return _svg(figure, "latency", "Output tokens per second against latency, with the Pareto front")


def tree(nodes: Sequence[Node]) -> str:
    """Hypotheses in the order of the run; each accepted change lifts those that build on it by one step."""
    top = max(n.depth for n in nodes)
    with drawing("tree", min(1.6 + 0.4 * top, MAX_TREE_IN)) as (figure, axes):
        places: dict[str | None, tuple[float, float]] = {None: (0, 0)}
        places |= {n.hypothesis.id: (n.order, n.depth - (0 if _accepted(n) else REFUSED_STEP)) for n in nodes}
        axes.plot(0, 0, "o", color=COLOURS["--base"], ms=8)
        axes.annotate("baseline", (0, 0), (0, -11), textcoords="offset points", ha="center", va="top")
        for node in nodes:
            _draw_node(axes, node, places, label=len(nodes) <= MANY_NODES)
        axes.set_xlabel("hypothesis, in the order of the run")
        axes.set_ylabel("accepted changes")
        axes.set_xlim(-0.8, len(nodes) + 0.8)
        axes.set_ylim(-0.7, top + 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(visible=False)
        return _svg(figure, "tree", "Which hypothesis built on which, in the order of the run")


def predictions(scores: Sequence[tuple[str, PredictionScore]]) -> str:
    """Measured effect against predicted effect, with the line on which a perfect prediction lies."""
    with drawing("predictions") as (figure, axes):
        ends = [value for _, s in scores for value in (s.predicted, s.measured)]
        low, high = min([*ends, 0.0]) - 0.02, max([*ends, 0.0]) + 0.02
        axes.plot([low, high], [low, high], color=COLOURS["--quiet"], lw=1, ls="--")
        for inside, colour, marker in ((True, "--best", "o"), (False, "--bad", "X")):
            shown = [(hypothesis, s) for hypothesis, s in scores if s.inside is inside]
            points = axes.scatter(
                [s.predicted for _, s in shown],
                [s.measured for _, s in shown],
                marker=marker,
                color=COLOURS[colour],
                s=28,
            )
            points.set_urls([f"#{hypothesis}" for hypothesis, _ in shown])
        axes.set_xlabel("predicted change of output tok/s")
        axes.set_ylabel("measured change")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        return _svg(figure, "predictions", "Measured against predicted effect of each hypothesis")


def series_classes(curves: Sequence[Curve]) -> list[tuple[Curve, str]]:
    """Each drawn curve with the name of its colour, for a legend in the page."""
    drawn = [c for c in curves if c.points]
    candidates = [c for c in drawn if c.role == "candidate"]
    return [(curve, _colour(curve, candidates)) for curve in drawn]


def _looks(curves: Sequence[Curve]) -> Iterator[tuple[Curve, dict[str, Any]]]:
    """How each curve is drawn: candidates first, so that baseline and best lie on top."""
    named = series_classes(curves)
    order = {"candidate": 0, "baseline": 1, "best": 2}
    for index, (curve, colour) in sorted(enumerate(named), key=lambda x: (order[x[1][0].role], x[0])):
        many = colour == "--quiet"
        yield (
            curve,
            {
                "color": COLOURS[colour],
                "marker": "o" if curve.role != "candidate" else MARKERS[index % len(MARKERS)],
                "ms": 3.5 if many else 5,
                "lw": {"best": 2.2, "baseline": 1.6, "candidate": 0.6 if many else 1.1}[curve.role],
                "ls": "--" if curve.role == "baseline" else "-",
                "alpha": 0.5 if many else 1.0,
                "gid": f"curve-{index}",
            },
        )


def _colour(curve: Curve, candidates: Sequence[Curve]) -> str:
    if curve.role != "candidate":
        return "--base" if curve.role == "baseline" else "--best"
    return f"--c{candidates.index(curve)}" if len(candidates) <= FEW else "--quiet"


def _concurrency_axis(axes: Axes, concurrencies: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(concurrencies, [str(c) for c in concurrencies])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("concurrent requests")


def _plain_numbers(axes: Axes) -> None:
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _accepted(node: Node) -> bool:
    return node.verdict is not None and node.verdict.kind is VerdictKind.IMPROVED


def _draw_node(axes: Axes, node: Node, places: dict[str | None, tuple[float, float]], *, label: bool) -> None:
    here, below = places[node.hypothesis.id], places[node.parent]
    colour, marker = VERDICT_LOOKS[node.verdict.kind] if node.verdict else ("--ink", "|")
    improved = _accepted(node)
    axes.plot(
        *zip(below, here, strict=True), color=COLOURS["--best" if improved else "--line"], lw=1, zorder=1
    )
    point = axes.scatter(*here, marker=marker, color=COLOURS[colour], s=90 if improved else 40, zorder=2)
    point.set_urls([f"#{node.hypothesis.id}"])
    if label or improved:
        axes.annotate(node.hypothesis.id, here, (0, 7), textcoords="offset points", ha="center", fontsize=7.5)


def _svg(figure: Figure, name: str, title: str) -> str:
    """The drawing as an element of a page: no ids that another picture has, no colours of its own."""
    out = StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(out, format="svg", metadata=nothing)
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r' (id|xlink:href)="(#?)([^"]*)"', lambda m: _own_id(m, name), text)
    text = re.sub(r"url\(#([^)]*)\)", rf"url(#{name}-\1)", text)
    for variable, placeholder in COLOURS.items():
        text = text.replace(placeholder, f"var({variable})")
    text = re.sub(r"\n\s*", "\n", text.replace(' target="_blank"', ""))
    size = re.search(r'viewBox="[^"]*"', text)
    assert size is not None
    head = f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {size[0]}'
    label = f'role="group" aria-label="{escape(title)}"'
    return f'{head} {label} class="plot">{text[text.index(">") + 1 :]}'


def _own_id(found: re.Match[str], name: str) -> str:
    attribute, mark, target = found.groups()
    if mark and re.fullmatch(r"H\d+", target):
        return f' href="#{target}" aria-label="{target}"'
    return f' {attribute}="{mark}{name}-{target}"'
