"""The findings report in Markdown: the answer first, then the evidence, negative results as much as gains."""

from collections.abc import Sequence

from moeagent.agent.show.calibrated import calibration_sentence, scores
from moeagent.agent.show.constraints import constraints_sentence
from moeagent.agent.show.equal_launches import HEAD as HEAD_EQUAL
from moeagent.agent.show.equal_launches import equal_launches
from moeagent.agent.show.family import parent_text
from moeagent.agent.show.left import binding, resume_command, tiers
from moeagent.agent.show.lineage import from_earlier_runs
from moeagent.agent.show.markup import cell, code, table
from moeagent.agent.show.power import HEAD, power_rows
from moeagent.agent.show.spent import took
from moeagent.agent.show.stability import boundary
from moeagent.agent.show.text import (
    SIMULATED,
    change_text,
    config_text,
    effect_text,
    in_force_text,
    percent,
    rate,
    seconds,
    verdict_effect_text,
)
from moeagent.memory.records import Diagnosis, Hypothesis, Launch, Rung
from moeagent.memory.review import Review, last_judgements
from moeagent.memory.run_view import RunView


def markdown(view: RunView, reviews: Sequence[Review] = (), ideas: Sequence[str] = ()) -> str:
    """The whole report, with what reviewers wrote and the ideas that are left; equal runs, equal bytes."""
    sections = (
        _answer(view),
        _throughput(view),
        _equal(view),
        _power(view),
        _hypotheses(view, reviews),
        _earlier(view),
        _reviews(reviews),
        _failures(view),
        _stability(view),
        _predictions(view),
        _left(view, ideas),
        _spent(view),
        _appendix(view),
    )
    return "\n".join(line for section in sections for line in section) + "\n"


def log_markdown(view: RunView, reviews: Sequence[Review] = ()) -> str:
    """The hypothesis log alone, for an issue or a chat."""
    lines = [f"# Hypotheses of run {view.run}", ""]
    lines += [f"**{SIMULATED}.**", ""] if view.simulated else []
    return "\n".join([*lines, *_hypotheses(view, reviews)[2:]]) + "\n"


def _answer(view: RunView) -> list[str]:
    lines = [f"# Findings of run {view.run}", ""]
    lines += [f"**{SIMULATED}.**", ""] if view.simulated else []
    lines += [f"Goal: {view.goal}. Status: {view.status}{': ' + view.reason if view.reason else ''}.", ""]
    lines += [f"This run {cell(parent_text(view))}.", ""] if view.parent else []
    lines += ["## The answer", ""]
    if view.best is None:
        return [*lines, "Nothing was measured.", ""]
    verdict = view.best_verdict
    if verdict and view.gain:
        lines += [f"The best configuration comes from {verdict.hypothesis}: {effect_text(view.gain)}", ""]
        lines += [f"That is {view.gain_source}. {verdict.reason}."]
    elif verdict:
        told = f"{verdict.hypothesis} is the best configuration; no number for its gain is supported."
        lines += [told, "", f"{verdict.reason}."]
    else:
        lines += ["The baseline is the best configuration that was proven: no change is shown to be better."]
    command = view.command_of(view.best)
    lines += ["", constraints_sentence(view, view.best)]
    return [*lines, "", *(code(command) if command else [f"Configuration: {config_text(view.best)}", ""])]


def _throughput(view: RunView) -> list[str]:
    launches = view.ledger.launches
    concurrencies = sorted({r.concurrency for launch in launches for r in launch.rungs})
    head = ["launch", "for", *(f"at {c}" for c in concurrencies), "outcome"]
    rows = [
        [
            launch.id,
            launch.hypothesis or "baseline",
            *(_rung(launch, c) for c in concurrencies),
            _outcome(launch),
        ]
        for launch in launches
    ]
    return ["## Output tok/s of every launch", "", *table(head, rows), *_latency(view, concurrencies)]


def _equal(view: RunView) -> list[str]:
    rows = equal_launches(view)
    return ["## Launches of the same configuration (A/A)", "", *table(HEAD_EQUAL, rows)] if rows else []


def _power(view: RunView) -> list[str]:
    rows = power_rows(view.ledger.launches)
    return ["## GPUs while measured", "", *table(HEAD, rows)] if rows else []


def _rung(launch: Launch, concurrency: int) -> str:
    rung = next((r for r in launch.rungs if r.concurrency == concurrency), None)
    if rung is None:
        return ""
    if rung.usable:
        return rate(rung.output_tok_s)
    kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(rung.failures_by_kind.items()))
    return rung.invalid or f"{rung.completed} completed, {kinds or f'{rung.failed} failed'}"


def _latency(view: RunView, concurrencies: Sequence[int]) -> list[str]:
    configs = [c for c in (view.ledger.baseline, view.best) if c is not None]
    rows = []
    for name, config in zip(("baseline", "best"), configs, strict=False):
        for concurrency in concurrencies:
            rungs = view.ledger.rungs_at(config, concurrency)
            if rungs:
                rows.append([name, str(concurrency), *_latencies(rungs)])
    head = ["configuration", "concurrency", "TTFT p50 / p99 ms", "TPOT p50 / p99 ms", "ITL p99 ms"]
    return ["Latencies, mean over launches:", "", *table(head, rows)]


def _latencies(rungs: Sequence[Rung]) -> list[str]:
    def mean(name: str, percentile: str) -> str:
        found = [getattr(d, percentile) for r in rungs if (d := getattr(r, name)) is not None]
        return f"{sum(found) / len(found):.1f}" if found else "-"

    both = [f"{mean(m, 'p50')} / {mean(m, 'p99')}" for m in ("ttft_ms", "tpot_ms")]
    return [*both, mean("itl_ms", "p99")]


def _outcome(launch: Launch) -> str:
    text = launch.outcome.value
    if launch.diagnosis:
        text += f": {launch.diagnosis.failure_class}"
    if launch.boundary:
        text += (
            f", good at {launch.boundary.last_good or '-'}, failed at {launch.boundary.first_failed or '-'}"
        )
    return text


def _hypotheses(view: RunView, reviews: Sequence[Review]) -> list[str]:
    judged = last_judgements(reviews)
    rows = [_hypothesis_row(view, h, judged.get(h.id)) for h in view.ledger.hypotheses]
    head = ["id", "hypothesis", "change", "reason", "measured", "verdict", "why"]
    lines = ["## Hypotheses", "", *(table(head, rows) if rows else ["None was tried.", ""])]
    if view.ledger.rejections:
        lines += ["Turned down before a launch:", ""]
        lines += table(
            ["idea", "change", "because"],
            [[r.statement, change_text(r.change), r.reason] for r in view.ledger.rejections],
        )
    return lines


def _earlier(view: RunView) -> list[str]:
    found = from_earlier_runs(view)
    if not found:
        return []
    rows = [[h.id, h.statement, h.prior, v.kind.value if v else "open"] for h, v in found]
    return ["## From earlier runs", "", *table(["id", "hypothesis", "known from", "here"], rows)]


def _reviews(reviews: Sequence[Review]) -> list[str]:
    rows = [[r.about, r.judgement or "note", r.text, r.at] for r in reviews]
    return (
        ["## What reviewers wrote", "", *table(["about", "judgement", "text", "when"], rows)] if rows else []
    )


def _hypothesis_row(view: RunView, hypothesis: Hypothesis, review: Review | None) -> list[str]:
    verdict = view.ledger.verdict(hypothesis.id)
    judged = f", {review.judgement} by a reviewer" if review else ""
    return [
        hypothesis.id,
        hypothesis.statement,
        change_text(hypothesis.change),
        f"{hypothesis.reason}{f' (known from {hypothesis.prior})' if hypothesis.prior else ''}",
        verdict_effect_text(verdict),
        f"{verdict.kind.value if verdict else 'open'}{judged}",
        verdict.reason if verdict else "",
    ]


def _failures(view: RunView) -> list[str]:
    failed = [launch for launch in view.ledger.launches if launch.diagnosis]
    if not failed:
        return ["## Failures", "", "No launch failed.", ""]
    lines = ["## Failures", ""]
    for launch in failed:
        if launch.diagnosis:
            lines += _failure(launch, launch.diagnosis)
    for pivot in view.ledger.pivots:
        lines.append(f"- {pivot.hypothesis}, attempt {pivot.attempt}: {cell(pivot.remedy)}")
    return [*lines, ""]


def _failure(launch: Launch, diagnosis: Diagnosis) -> list[str]:
    lines = [
        f"### {launch.id} ({launch.hypothesis or 'baseline'}): {diagnosis.failure_class}",
        "",
        cell(diagnosis.explanation),
        "",
    ]
    if diagnosis.root_line:
        lines += [f"Line {diagnosis.line_no} of the log, confidence {diagnosis.confidence:.0%}:", ""]
        lines += code(diagnosis.root_line)
    rows = [[r.direction, r.target, r.change, r.why] for r in diagnosis.remedies]
    return [*lines, *(table(["direction", "what", "change", "why"], rows) if rows else [])]


def _stability(view: RunView) -> list[str]:
    found = boundary(view)
    rows = [
        [r.label, *r.states, str(r.last_good or "-"), str(r.first_failed or "-"), r.outcomes]
        for r in found.rows
    ]
    head = [
        "configuration",
        *(f"at {c}" for c in found.concurrencies),
        "last good",
        "first failed",
        "launches",
    ]
    return ["## Stability boundary", "", *table(head, rows)] if rows else []


def _predictions(view: RunView) -> list[str]:
    found = scores(view)
    if not found:
        return []
    rows = [
        [name, str(s.concurrency), percent(s.predicted), percent(s.measured), "yes" if s.inside else "no"]
        for name, s in found
    ]
    return [
        "## Predictions against measurements",
        "",
        calibration_sentence(found),
        "",
        *table(["id", "concurrency", "predicted", "measured", "in range"], rows),
    ]


def _left(view: RunView, ideas: Sequence[str]) -> list[str]:
    limits = [f"- {cell(sentence)}" for sentence in binding(view)]
    lines = ["## What is left", ""]
    lines += ["What binds, as far as the measurements name it:", "", *limits, ""] if limits else []
    for tier in tiers(view, ideas):
        lines += [f"### {tier.name}", "", *(f"- {cell(thing)}" for thing in tier.things), ""]
    return [*lines, f"Go on with `{resume_command(view)}`.", ""]


def _spent(view: RunView) -> list[str]:
    launches = view.ledger.launches
    all_of_them = took(launches)
    kwh = all_of_them.energy_kwh
    energy = "" if kwh is None else f"; {kwh:.3f} kWh of the GPUs while measuring"
    return [
        "## Spent",
        "",
        f"{len(launches)} launches, {len(view.ledger.hypotheses)} hypotheses; "
        f"{seconds(all_of_them.starting_s)} starting servers, {seconds(all_of_them.measuring_s)} "
        f"measuring{energy}.",
        "",
    ]


def _appendix(view: RunView) -> list[str]:
    facts = view.ledger.facts
    lines = ["## Environment", ""]
    if facts:
        gpus = f"{facts.scope.gpu_count} x {facts.scope.gpu}" if facts.scope.gpu_count else facts.scope.gpu
        lines += [
            f"- host {cell(facts.host.name)}: {cell(gpus)}, driver {facts.host.driver or '-'}, "
            f"CUDA {facts.host.cuda or '-'}",
            f"- engine {facts.engine} {facts.engine_version or '(version unknown)'}, "
            f"{facts.knob_count} flags read from its {facts.knobs_source or 'catalogue'}",
            f"- model {cell(facts.model.path)}",
            *(f"- {cell(problem)}" for problem in facts.problems),
            "",
        ]
    workload = view.header["settings"]["workload"]
    lines += [
        f"Workload: {workload['dataset']}, {workload['input_len']} in / {workload['output_len']} out, "
        f"concurrency {', '.join(map(str, workload['ladder']))}, seed {workload['seed']}.",
        "",
        "## Configurations",
        "",
    ]
    seen = {launch.config.id: launch for launch in view.ledger.launches}
    rows = [[launch.id, config_text(launch.config), in_force_text(launch)] for launch in seen.values()]
    return [*lines, *table(["launch", "requested", "in force where it differs"], rows)]
