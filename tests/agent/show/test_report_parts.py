"""What the report says about a run, before it is drawn."""

import io
from pathlib import Path

import pytest
from parts.hostile import HOSTILE
from parts.made_run import (
    BASELINE,
    MadeRun,
    conclusion,
    facts,
    hypothesis,
    out_of_memory,
    verdict,
    write_run,
)
from rich.console import Console

from moeagent.agent.show.constraints import checks, constraints_sentence
from moeagent.agent.show.curves import Curve, Point, curves, front
from moeagent.agent.show.html.answer import answer
from moeagent.agent.show.html.page import page
from moeagent.agent.show.left import tiers
from moeagent.agent.show.lineage import lineage
from moeagent.agent.show.log import print_log
from moeagent.agent.show.plain import Text
from moeagent.agent.show.power import power_rows, power_sentence
from moeagent.agent.show.report import markdown
from moeagent.agent.show.spent import spent
from moeagent.agent.show.stability import boundary
from moeagent.agent.show.visible import visible
from moeagent.memory.ledger import Incumbent
from moeagent.memory.records import ConfigChange, GpuLoad, GpuSamples, VerdictKind
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.run_view import RunView
from moeagent.tools.load.gpu_figures import with_gpus


@pytest.fixture
def made(tmp_path: Path) -> RunFolder:
    return write_run(tmp_path / "runs")


def curve(label: str, *points: tuple[float, float]) -> Curve:
    """Points of (latency, tok/s)."""
    made = [Point(i, tok_s, tok_s, tok_s, 1, latency) for i, (latency, tok_s) in enumerate(points)]
    return Curve(label, None, "candidate", tuple(made))


def test_front_keeps_what_nothing_beats() -> None:
    found = front([curve("a", (1, 100), (2, 150), (3, 140)), curve("b", (1.5, 160), (4, 170), (1, 90))])
    assert [(c.label, p.latency_s, p.tok_s) for c, p in found] == [
        ("a", 1, 100),
        ("b", 1.5, 160),
        ("b", 4, 170),
    ]


def test_front_without_latencies_is_empty() -> None:
    point = Point(1, 5.0, 5.0, 5.0, 1, None)
    assert front([Curve("a", None, "best", (point,))]) == ()


def test_curves_name_roles_and_leave_out_failed_rungs(made: RunFolder) -> None:
    found = {c.label: c for c in curves(RunView.read(made))}
    assert {label: c.role for label, c in found.items()} == {
        "baseline": "baseline",
        "H1": "best",
        "H2": "candidate",
        "H3 from L5": "candidate",
        "H3 from L6": "candidate",
        "H4": "candidate",
        "H5": "candidate",
    }
    assert [p.concurrency for p in found["H3 from L5"].points] == [1, 10, 64]
    assert found["baseline"].points[0].launches == 2
    assert found["baseline"].points[0].low < found["baseline"].points[0].high


def test_power_is_shown_where_it_was_sampled_and_nowhere_else(tmp_path: Path) -> None:
    load = GpuLoad(gpu=0, power_w=640.0, sm_mhz=1755.0, sm_mhz_min=1200.0, held_by={"power cap": 0.25})
    cold = GpuSamples(moments=9, gpus=(load,), power_w=640.0, power_max_w=700.0)
    hot = cold.model_copy(update={"throttled": "throttled: GPU 0: power brake"})
    made = MadeRun(tmp_path / "runs", "sampled")
    made.decide(facts())
    made.decide(Incumbent(config=BASELINE, hypothesis=None))
    launch = made.launch(BASELINE)
    first, *others = launch.rungs
    rungs = (with_gpus(first, cold), with_gpus(others[0], hot), *others[1:])
    made.decide(launch.model_copy(update={"id": "L2", "rungs": rungs}))
    folder = made.close()
    view = RunView.read(folder)

    rows = power_rows(view.ledger.launches)
    assert [row[:3] for row in rows] == [["L2", "1", "640 / 700"], ["L2", "10", "640 / 700"]]
    assert rows[0][-1] == "power cap 25%"
    assert "640 W" in power_sentence(rungs[0])
    assert "J per token" in power_sentence(rungs[0])
    assert power_sentence(rungs[2]) == ""
    assert "## GPUs while measured" in markdown(view)
    assert "Power, clocks and energy of every rung" in page(folder, view)
    shown = view.to_json()["baseline"]["launches"][1]["rungs"]
    assert shown[0]["gpu"]["power_w"] == 640.0
    assert shown[0]["energy_per_token_j"] == pytest.approx(rungs[0].energy_per_token_j)
    assert shown[2]["energy_per_token_j"] is None
    words = io.StringIO()
    print_log(view, Console(file=words, width=200))
    assert "throttled" in words.getvalue()
    assert "1,755 / 1,200" in words.getvalue()


def test_constraints_are_checked_at_each_concurrency(made: RunFolder) -> None:
    view = RunView.read(made)
    assert view.best is not None
    held = {check.concurrency: check.holds for check in checks(view, view.best)}
    assert held == {1: True, 10: True, 64: True, 256: False}
    assert constraints_sentence(view, view.best) == (
        "It holds ttft p99 at most 2 s at concurrency 1, 10, 64, not at 256."
    )
    told = answer(view, curves(view))
    assert told is not None
    assert told.best_top.endswith(" at 64")


def test_tree_lifts_what_builds_on_an_accepted_change(made: RunFolder) -> None:
    nodes = lineage(RunView.read(made))
    assert [(n.hypothesis.id, n.parent, n.depth) for n in nodes] == [
        ("H1", None, 1),
        ("H2", "H1", 2),
        ("H3", "H1", 2),
        ("H4", "H1", 2),
        ("H5", "H1", 2),
    ]


def test_stability_names_the_last_good_and_first_failed(made: RunFolder) -> None:
    found = boundary(RunView.read(made))
    row = next(r for r in found.rows if r.label == "H3 from L6")
    assert found.concurrencies == (1, 10, 64, 256)
    assert row.states == ("serves", "serves", "serves", "failed")
    assert (row.last_good, row.first_failed) == (64, 256)


def test_what_is_left_is_in_tiers_and_leaves_out_what_a_pivot_tried(made: RunFolder) -> None:
    found = {tier.name: " ".join(tier.things) for tier in tiers(RunView.read(made))}
    assert "H5 is inconclusive" in found["More launches of what is there"]
    assert "--chunked-prefill-size" in found["Another setting"]
    assert "--mem-fraction-static" not in found["Another setting"]
    assert "stop them" in found["Work outside the server's settings"]
    assert "peer-to-peer" in found["Work outside the server's settings"]


def test_spent_adds_up_time_and_money(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs", host={"price_per_hour": 12.0})
    tape = folder.read_tape()
    found = spent(tape.header, tape.entries, RunView.read(folder).ledger)
    assert (found.launches, found.failed_launches, found.hypotheses) == (8, 2, 5)
    assert found.active_s == 2400.0
    assert found.machine_cost == pytest.approx(8.0)
    assert found.launched_at_s["L2"] == 600.0
    assert found.model_calls == 0


def test_answer_shows_the_confirmed_gain(made: RunFolder) -> None:
    view = RunView.read(made)
    found = answer(view, curves(view))
    assert found is not None
    assert found.headline == "H1 is better by +8.0% (interval +5.0% to +11.0%)."
    assert found.command.startswith("python -m sglang.launch_server")


@pytest.mark.parametrize("kind", [k for k in VerdictKind if k is not VerdictKind.IMPROVED])
def test_no_gain_is_shown_that_the_verdict_does_not_support(tmp_path: Path, kind: VerdictKind) -> None:
    run = MadeRun(tmp_path / "runs", "rise")
    run.decide(facts())
    run.decide(Incumbent(config=BASELINE, hypothesis=None))
    run.launch(BASELINE)
    change = ConfigChange(set_flags={"--x": 1})
    run.decide(hypothesis(1, change, BASELINE))
    run.launch(BASELINE.apply(change), "H1", factor=1.2)
    run.decide(
        verdict(1, kind, 0.2).model_copy(update={"reason": "see above", "effects": (), "predictions": ()})
    )
    folder = run.close()
    text = page(folder, RunView.read(folder))
    assert "No change was shown to be better than the baseline." in text
    assert "none proven" in text
    assert "+20.0%" not in text


def test_a_refuted_gain_is_none(tmp_path: Path) -> None:
    run = MadeRun(tmp_path / "runs", "refuted")
    run.decide(facts())
    run.decide(Incumbent(config=BASELINE, hypothesis=None))
    run.launch(BASELINE)
    change = ConfigChange(set_flags={"--x": 1})
    best = Incumbent(config=BASELINE.apply(change), hypothesis="H1")
    run.decide(hypothesis(1, change, BASELINE))
    run.launch(best.config, "H1", factor=1.2)
    run.decide(verdict(1, VerdictKind.IMPROVED, 0.2))
    run.decide(best)
    why = {"confirmation": "refuted", "confirmed_gain": None, "confirmation_reason": "it is not there"}
    run.decide(conclusion(best, 0.0, 1, **why))
    view = RunView.read(run.close())
    found = answer(view, curves(view))
    assert found is not None
    assert found.gain == ""
    assert "no number for its gain is supported" in found.headline


@pytest.mark.parametrize("entries", ["header", "survey", "baseline died"])
def test_page_of_a_run_with_nothing_measured(tmp_path: Path, entries: str) -> None:
    run = MadeRun(tmp_path / "runs", "young")
    if entries != "header":
        run.decide(facts())
    if entries == "baseline died":
        run.launch(BASELINE, diagnosis=out_of_memory())
    folder = run.close()
    text = page(folder, RunView.read(folder))
    assert "Nothing was measured." in text
    assert "still going, or was cut off" in text
    assert ("oom.cuda.serve" in text) is (entries == "baseline died")


def test_page_is_the_same_bytes_every_time(made: RunFolder) -> None:
    assert page(made, RunView.read(made)) == page(made, RunView.read(made))


def test_a_missing_log_costs_the_excerpt_only(made: RunFolder) -> None:
    for log in (made.path / "logs").iterdir():
        log.unlink()
    assert "CUDA out of memory" in page(made, RunView.read(made))


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_visible_text_has_nothing_that_acts(name: str) -> None:
    shown = visible(HOSTILE[name])
    assert all(c.isprintable() or c in "\n\t" for c in shown)
    assert len(shown) < 2200
    assert Text(HOSTILE[name]).plain == shown
    assert Text.assemble("a ", (HOSTILE[name], "bold")).plain == f"a {shown}"


def test_a_cut_text_says_how_much_is_missing() -> None:
    assert visible("x" * 2500).endswith("[... 500 more characters]")
    assert visible("zeile\u2028eins") == "zeile\\u2028eins"
