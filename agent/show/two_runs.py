"""Two recorded runs against each other: where they part, and which decisions they do not share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from moeagent.agent.rethink import Change, differences
from moeagent.agent.show.decision_words import words
from moeagent.agent.show.plain import Text
from moeagent.agent.show.rethought import value_text
from moeagent.agent.show.text import SIMULATED
from moeagent.agent.show.visible import short
from moeagent.memory.ledger import Ledger, decision_of, kind_of
from moeagent.memory.tape.lines import Entry, TapeFile
from moeagent.memory.tape.show import difference


@dataclass(frozen=True)
class Decision:
    """One decision: what it is about, by which the two runs are paired, and what it says."""

    line: int
    kind: str
    subject: str
    says: str


@dataclass(frozen=True)
class Pair:
    """A decision of one run beside that of the other; None where the other has none."""

    one: Decision | None
    other: Decision | None

    @property
    def same(self) -> bool:
        """Whether both say the same."""
        return self.one is not None and self.other is not None and self.one.says == self.other.says


@dataclass(frozen=True)
class TwoRuns:
    """The whole comparison."""

    names: tuple[str, str]
    simulated: bool
    settings: tuple[Change, ...]
    """Settings that differ: `recorded` is the first run's, `now` the other's."""
    shared: int
    """Lines of the tapes that are the same in both, up to the first that differ; markers do not count."""
    parted_at: tuple[int, int] | None
    """The tape lines that differ; None where one run is the beginning of the other."""
    first: str
    """These lines as a diff."""
    pairs: tuple[Pair, ...]

    def to_json(self) -> dict[str, Any]:
        """One object for programs."""
        return {
            "runs": list(self.names),
            "settings": [change.model_dump(mode="json") for change in self.settings],
            "shared_lines": self.shared,
            "parted_at": self.parted_at,
            "first_difference": self.first,
            "decisions": [
                {
                    "same": p.same,
                    "one": vars(p.one) if p.one else None,
                    "other": vars(p.other) if p.other else None,
                }
                for p in self.pairs
            ],
        }


def two_runs(one: TapeFile, other: TapeFile) -> TwoRuns:
    """Compare; measured figures count only as far as a decision says them."""
    mine, theirs = (_told(tape) for tape in (one, other))
    shared = _shared(mine, theirs)
    parted_at, first = None, ""
    if shared < min(len(mine), len(theirs)):
        recorded, then = mine[shared], theirs[shared]
        parted_at = (recorded.line_no, then.line_no)
        first = difference(recorded, then.type, then.body).partition("\n")[2]
    decisions = _decisions(one), _decisions(other)
    return TwoRuns(
        names=(one.header["run"], other.header["run"]),
        simulated=any(_is_simulated(tape) for tape in (one, other)),
        settings=tuple(differences(one.header["settings"], other.header["settings"])),
        shared=shared,
        parted_at=parted_at,
        first=first,
        pairs=tuple(_paired(*decisions)),
    )


def two_runs_text(found: TwoRuns) -> RenderableType:
    """Settings, the point where they part, and the decisions that are not shared."""
    one, other = found.names
    parts: list[RenderableType] = [Text(SIMULATED, style="bold yellow")] if found.simulated else []
    parts += [
        Text(f"setting {c.field}: {value_text(c.recorded)} in {one}, {value_text(c.now)} in {other}")
        for c in found.settings
    ]
    parts.append(Text(_parting(found), style="bold"))
    parts += [Text(line, style=_diff_style(line)) for line in found.first.splitlines()[2:]]
    unlike = [pair for pair in found.pairs if not pair.same]
    same = len(found.pairs) - len(unlike)
    parts.append(Text(f"{same} decisions are the same, {len(unlike)} are not", style="bold"))
    return Group(*parts, *([_table(found.names, unlike)] if unlike else []))


def _parting(found: TwoRuns) -> str:
    same = f"the tapes are the same for {found.shared} lines"
    if found.parted_at is None:
        return f"{same}; there one of them ends"
    here, there = (f"{name} line {line}" for name, line in zip(found.names, found.parted_at, strict=True))
    return f"{same}; then - {here}, + {there}:"


def _diff_style(line: str) -> str:
    return {"-": "red", "+": "green"}.get(line[:1], "dim")


def _table(names: tuple[str, str], pairs: Sequence[Pair]) -> Table:
    table = Table(expand=True, show_lines=True)
    table.add_column("decision", ratio=2, overflow="fold")
    for name in names:
        table.add_column(Text(name), ratio=3, overflow="fold")
    for pair in pairs:
        known = pair.one or pair.other
        assert known is not None
        table.add_row(Text(f"{known.kind}\n{short(known.subject)}"), _cell(pair.one), _cell(pair.other))
    return table


def _cell(decision: Decision | None) -> Text:
    if decision is None:
        return Text("none", style="dim")
    return Text(f"line {decision.line}: {short(decision.says)}")


def _told(tape: TapeFile) -> list[Entry]:
    """What was asked, answered and decided."""
    return [entry for entry in tape.entries if entry.type not in ("header", "marker")]


def _shared(one: Sequence[Entry], other: Sequence[Entry]) -> int:
    for number, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine.type != theirs.type or mine.untimed != theirs.untimed:
            return number
    return min(len(one), len(other))


def _decisions(tape: TapeFile) -> list[Decision]:
    ledger, found = Ledger(), []
    for entry in tape.entries:
        if entry.type == "decision":
            record = decision_of(entry)
            ledger.add(record)
            found.append(Decision(entry.line_no, kind_of(record), *words(record, ledger)))
    return found


def _paired(one: Sequence[Decision], other: Sequence[Decision]) -> Iterator[Pair]:
    mine, theirs = ([(d.kind, d.subject) for d in side] for side in (one, other))
    for _, a, a_end, b, b_end in SequenceMatcher(a=mine, b=theirs, autojunk=False).get_opcodes():
        if mine[a:a_end] == theirs[b:b_end]:
            yield from (Pair(x, y) for x, y in zip(one[a:a_end], other[b:b_end], strict=True))
        else:
            yield from (Pair(x, None) for x in one[a:a_end])
            yield from (Pair(None, y) for y in other[b:b_end])


def _is_simulated(tape: TapeFile) -> bool:
    facts = next((e for e in tape.entries if e.type == "decision" and e.kind == "facts"), None)
    return facts is not None and bool(facts.body["value"]["scope"]["simulated"])
