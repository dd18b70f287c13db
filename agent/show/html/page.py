"""The whole page, from a run's folder."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from moeagent.agent.show import plots
from moeagent.agent.show.calibrated import calibration_sentence, scores
from moeagent.agent.show.curves import Curve, curves
from moeagent.agent.show.family import parent_text
from moeagent.agent.show.html.answer import answer
from moeagent.agent.show.html.environment import configurations_table, environment_table
from moeagent.agent.show.html.measured import (
    boundary_table,
    equal_table,
    front_table,
    latency_table,
    power_table,
    raw_table,
    throughput_table,
)
from moeagent.agent.show.html.templating import environment
from moeagent.agent.show.html.tried import failures, glance, score_table, tried
from moeagent.agent.show.left import binding, resume_command, tiers
from moeagent.agent.show.lineage import Node, children, from_earlier_runs, lineage
from moeagent.agent.show.spent import spent
from moeagent.agent.show.text import SIMULATED
from moeagent.memory.records import PredictionScore
from moeagent.memory.review import read_reviews
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.run_view import RunView


def page(folder: RunFolder, view: RunView, ideas: Sequence[str] = (), *, home: str = "") -> str:
    """One self-contained HTML document, with the ideas that are left; equal runs give equal bytes.

    `home` is where a link leads back to.
    """
    template = environment().get_template("report.html.jinja")
    text: str = template.render(home=home, **_content(folder, view, ideas))
    return text.encode("utf-8", "replace").decode()


def _content(folder: RunFolder, view: RunView, ideas: Sequence[str]) -> dict[str, Any]:
    found = curves(view)
    nodes = lineage(view)
    all_scores = scores(view)
    every = tried(view)
    tape = folder.read_tape()
    return {
        "view": view,
        "reviews": read_reviews(folder),
        "simulated": SIMULATED if view.simulated else "",
        "parent": parent_text(view),
        "answer": answer(view, found),
        "conclusion": view.ledger.conclusion,
        "curves": found,
        "legend": plots.series_classes(found),
        "pictures": _pictures(found, nodes, all_scores),
        "throughput_table": throughput_table(found),
        "front_table": front_table(found),
        "latency_table": latency_table(found),
        "nodes": nodes,
        "earlier": from_earlier_runs(view),
        "children": children,
        "tried": every,
        "glance": glance(every),
        "score_table": score_table(all_scores),
        "calibration": calibration_sentence(all_scores),
        "failures": failures(view, folder),
        "boundary_table": boundary_table(view),
        "spent": spent(tape.header, tape.entries, view.ledger),
        "binding": binding(view),
        "tiers": tiers(view, ideas),
        "resume_command": resume_command(view),
        "environment_table": environment_table(view),
        "configurations_table": configurations_table(view),
        "equal_table": equal_table(view),
        "power_table": power_table(view.ledger.launches),
        "raw_table": raw_table(view.ledger.launches),
    }


def _pictures(
    found: tuple[Curve, ...], nodes: tuple[Node, ...], all_scores: list[tuple[str, PredictionScore]]
) -> dict[str, Markup]:
    """Each picture that has something to show; the drawings hold our own words and ids, no remote text."""
    drawn = [c for c in found if c.points]
    waits = [p for c in drawn for p in c.points if p.latency_s is not None]
    pictures = {}
    if drawn:
        pictures["throughput"] = plots.throughput(drawn)
    if waits:
        pictures["latency"] = plots.throughput_against_latency(drawn)
    if nodes:
        pictures["tree"] = plots.tree(nodes)
    if all_scores:
        pictures["predictions"] = plots.predictions(all_scores)
    return {name: Markup(svg) for name, svg in pictures.items()}  # noqa: S704 - drawn by matplotlib, escaped
