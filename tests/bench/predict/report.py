"""How well the predictor does against published measurements: a report, not a gate.

Run `PYTHONPATH=tests python -m bench.predict.report [TABLE.csv]`.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.predict.rows import FIXTURES, Case, SkippedRow, case_of, parent_of, read_table
from rich.console import Console
from rich.table import Table

from moeagent.tools.predict.predictor import predict
from moeagent.tools.predict.tables import constants, priors

_WORTH = 0.05
_PREFILL_WIDTH = 1.3


@dataclass(frozen=True)
class Scored:
    """One row's prediction beside its measurement."""

    id: str
    what: str
    measured: float
    predicted: float
    low: float
    high: float
    fitted: bool

    @property
    def error(self) -> float:
        """Relative error of the prediction."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True)
class Report:
    """All rows: scored speeds, scored effects (as ratios to the parent minus one), and what was left out."""

    speeds: tuple[Scored, ...]
    changes: tuple[Scored, ...]
    skipped: dict[str, str]

    def median_error(self, *, fitted: bool = False) -> float:
        """Median absolute error over the rows that no constant was fitted to, or over the fitted ones."""
        return median(abs(s.error) for s in self.speeds if s.fitted == fitted)

    def sign_share(self) -> tuple[int, int]:
        """Right signs, and rows, among unfitted changes of more than 5 %."""
        worth = [c for c in self.changes if abs(c.measured) > _WORTH and not c.fitted]
        return sum(c.measured * c.predicted > 0 for c in worth), len(worth)


def fitted_rows() -> set[str]:
    """Ids of the rows that some constant or published effect in the tables rests on."""
    rows = {row for constant in constants().values() for row in constant.rows}
    return rows | {row for prior in priors() for row in prior.rows}


def score(path: Path) -> Report:
    """Predict every row of a table."""
    return score_rows(read_table(path))


def score_rows(rows: Iterable[dict[str, str]]) -> Report:
    """Predict rows that have the table's columns."""
    fitted, speeds, changes, skipped = fitted_rows(), [], [], {}
    cases = []
    for row in rows:
        try:
            case = case_of(row)
            speeds.append(_speed(case, fitted))
            cases.append(case)
        except SkippedRow as reason:
            skipped[row["id"]] = str(reason)
    for case in cases:
        try:
            changes.append(_change(case, cases, fitted))
        except SkippedRow as reason:
            if case.row["change"]:
                skipped[f"{case.id} (change)"] = str(reason)
    return Report(speeds=tuple(speeds), changes=tuple(changes), skipped=skipped)


def _speed(case: Case, fitted: set[str]) -> Scored:
    value, low, high = _figure(case)
    row = case.row
    what = (
        f"{row['hardware'][:12]} x{row['n_gpus']} {row['model'][:22]} {row['quant'][:6]} {row['engine'][:6]}"
    )
    what = f"{what} {row['parallel'][:12]} {row['flags'][:24]} c{row['concurrency']} {case.metric}"
    return Scored(case.id, what, case.measured, value, low, high, case.id in fitted)


def _figure(case: Case) -> tuple[float, float, float]:
    """The predicted figure that the row measured, with its interval. Raises SkippedRow when there is none."""
    found = predict(case.config, case.machine, case.model, case.workload)
    if not found.rungs or found.prefill_tok_s is None:
        raise SkippedRow("; ".join(found.problems))
    rung = found.rungs[0]
    speed = rung.output_tok_s
    if case.metric == "prefill":
        return found.prefill_tok_s, found.prefill_tok_s / _PREFILL_WIDTH, found.prefill_tok_s * _PREFILL_WIDTH
    if case.metric == "serve":
        return speed.value, speed.low, speed.high
    decode = rung.running / (rung.tpot_ms.value - rung.terms_ms.get("prefill of others", 0.0)) * 1e3
    return decode, speed.low * decode / speed.value, speed.high * decode / speed.value


def _change(case: Case, cases: list[Case], fitted: set[str]) -> Scored:
    """The row's effect: as published, else against the row of the same host that lacks the change."""
    parent = parent_of(case)
    if case.row["delta_pct"]:
        measured = float(case.row["delta_pct"]) / 100
    else:
        parent = _twin(case, cases, parent)
        measured = case.measured / parent.measured - 1
    before, after = _figure(parent), _figure(case)
    row = case.row
    what = f"{row['model'][:20]} {row['engine'][:6]} {row['change'][:40]} c{row['concurrency']}"
    value = after[0] / before[0] - 1
    return Scored(case.id, what, measured, value, value, value, case.id in fitted)


def _twin(case: Case, cases: list[Case], parent: Case) -> Case:
    """The measured row with the parent's flags; its environment may differ, and is predicted as it was."""
    for other in cases:
        same = all(other.row[k] == case.row[k] for k in ("hardware", "model", "engine_version", "source"))
        if same and other.config.flags == parent.config.flags and other.workload == case.workload:
            return other
    raise SkippedRow("no row of the same host without the change")


def render(report: Report, console: Console) -> None:
    """Print the report as tables."""
    for fitted in (False, True):
        table = Table(
            title="Rows that constants were set on" if fitted else "Rows that no constant was fitted to"
        )
        for column in ("row", "what", "measured", "predicted", "error", "inside"):
            table.add_column(column)
        for s in report.speeds:
            if s.fitted == fitted:
                inside = "yes" if s.low <= s.measured <= s.high else "no"
                table.add_row(
                    s.id, s.what, f"{s.measured:.1f}", f"{s.predicted:.1f}", f"{s.error:+.1%}", inside
                )
        console.print(table)
    changes = Table(title="Effects of single changes")
    for column in ("row", "what", "measured", "predicted", "sign", "fitted"):
        changes.add_column(column)
    for c in report.changes:
        sign = "-" if abs(c.measured) <= _WORTH else "right" if c.measured * c.predicted > 0 else "wrong"
        changes.add_row(
            c.id, c.what, f"{c.measured:+.1%}", f"{c.predicted:+.1%}", sign, "yes" if c.fitted else ""
        )
    console.print(changes)
    for row, reason in report.skipped.items():
        console.print(f"not scored: {row}: {reason}", markup=False)
    right, rows = report.sign_share()
    unfitted = [s for s in report.speeds if not s.fitted]
    inside = sum(s.low <= s.measured <= s.high for s in unfitted)
    console.print(f"median absolute error, {len(unfitted)} unfitted rows: {report.median_error():.1%}")
    console.print(f"median absolute error, fitted rows: {report.median_error(fitted=True):.1%}")
    console.print(f"inside the interval: {inside} of {len(unfitted)}")
    console.print(f"sign right for changes above 5 %: {right} of {rows}")


if __name__ == "__main__":
    table = Path(sys.argv[1]) if len(sys.argv) > 1 else FIXTURES / "measurements.csv"
    render(score(table), Console(width=170))
