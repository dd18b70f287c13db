"""A recorded run as a sequence of moments: what the world was asked and said, and what was decided."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from moeagent.agent.show.lines import lines_of, rung_text
from moeagent.agent.show.plain import Text
from moeagent.agent.show.text import seconds
from moeagent.agent.show.visible import short
from moeagent.agent.show.waiting import effect_text
from moeagent.memory.errors import InputError
from moeagent.memory.ledger import decision_of
from moeagent.memory.records import Rung
from moeagent.memory.tape.lines import Entry, TapeFile

DURATIONS = {"start": ("after_s",), "load": ("rung", "duration_s"), "complete": ("elapsed_s",)}
"""Where an answer says itself how long the effect took; of older tapes nothing else does."""


@dataclass(frozen=True)
class Moment:
    """One effect with its answer, one decision, or one marker."""

    line: int
    """Of the tape: where the request or the decision stands."""
    last_line: int
    kind: Literal["effect", "decision", "marker"]
    name: str
    """Of the effect or decision, such as load or verdict."""
    ids: tuple[str, ...]
    """Hypothesis and launch that it is about."""
    told: tuple[Text, ...]
    took_s: float = 0.0
    """As far as the recording tells: from the answer itself, else a share of the time between two clocks."""

    def to_json(self) -> dict[str, Any]:
        """One object for programs."""
        return {
            "line": self.line,
            "kind": self.kind,
            "name": self.name,
            "ids": list(self.ids),
            "took_s": round(self.took_s, 3),
            "text": "\n".join(line.plain for line in self.told),
        }


def moments(tape: TapeFile) -> tuple[Moment, ...]:
    """The whole run; readings of the clock only give the moments between them their time."""
    timed: list[Moment] = []
    since: list[Moment] = []
    before = 0.0
    for moment, clock in _all(tape.entries):
        if clock is None:
            since.append(moment)
            continue
        timed += _spread(since, clock - before)
        since, before = [], clock
    return (*timed, *since)


def up_to(found: tuple[Moment, ...], where: str) -> tuple[Moment, ...]:
    """The moments up to a tape line, a hypothesis's verdict or a launch's record. Raises InputError."""
    if where.isdigit():
        kept = [m for m in found if m.line <= int(where)]
    else:
        about = [number for number, m in enumerate(found, start=1) if where in m.ids]
        closing = [number for number in about if _closes(found[number - 1], where)]
        kept = list(found[: max(closing or about, default=0)])
    if found and not kept:
        known = ", ".join(dict.fromkeys(i for m in found for i in m.ids))
        raise InputError(
            f"--until {where} is neither a line of the tape nor an id of the run; it has {known}"
        )
    return tuple(kept)


def _closes(moment: Moment, id_: str) -> bool:
    return moment.name == "verdict" or (moment.name == "launch" and moment.ids[0] == id_)


def _all(entries: Sequence[Entry]) -> Iterator[tuple[Moment, float | None]]:
    """Each moment, and the clock's reading where it is one."""
    for entry, following in zip(entries, [*entries[1:], None], strict=True):
        if entry.type == "request":
            yield _effect(entry, following)
        elif entry.type == "decision":
            yield _decision(entry), None
        elif entry.type == "marker":
            yield _marker(entry), None


def _effect(entry: Entry, following: Entry | None) -> tuple[Moment, float | None]:
    answered = following if following is not None and following.type == "response" else None
    body: dict[str, Any] = answered.body if answered else {}
    answer = body.get("response", {})
    told = Text(f"{effect_text(entry)}: {_answer_text(entry.kind, body) if answered else 'cut off here'}")
    moment = Moment(
        line=entry.line_no,
        last_line=answered.line_no if answered else entry.line_no,
        kind="effect",
        name=entry.kind,
        ids=tuple(filter(None, [entry.body["request"].get("launch")])),
        told=(told,),
        took_s=max(float(body.get("took_s", 0.0)), _duration(entry.kind, answer)),
    )
    return moment, float(answer["active_s"]) if entry.kind == "clock" and answer else None


def _decision(entry: Entry) -> Moment:
    value = entry.body["value"]
    ids = (value.get("id"), value.get("hypothesis"), value.get("about"))
    return Moment(
        line=entry.line_no,
        last_line=entry.line_no,
        kind="decision",
        name=entry.kind,
        ids=tuple(str(i) for i in ids if i),
        told=tuple(lines_of(decision_of(entry))),
    )


def _marker(entry: Entry) -> Moment:
    body = entry.body
    amended = f" with {short(str(body['amend']))}" if body.get("amend") else ""
    told = f"{body['marker']} {body.get('at') or body.get('reason', '')}{amended}".strip()
    return Moment(entry.line_no, entry.line_no, "marker", body["marker"], (), (Text(told, style="yellow"),))


def _answer_text(kind: str, body: dict[str, Any]) -> str:
    if "error" in body:
        return f"{body['error']['type']}: {short(body['error']['message'])}"
    answer = body["response"]
    match kind:
        case "start":
            why = f": {short(answer['reason'])}" if answer.get("reason") else ""
            return f"{answer['outcome']} after {seconds(answer['after_s'])}{why}"
        case "load":
            return _rung_sentence(Rung.model_validate(answer["rung"]), alive=answer["alive"])
        case "findings":
            return f"{len(answer['known'])} findings"
        case "complete":
            return short(str(answer.get("content") or answer.get("message") or "no text"))
        case "stop":
            return "gone" if answer["verified"] else short("; ".join(answer["problems"]))
        case "approve":
            return str(answer.get("answer"))
    return "done"


def _rung_sentence(rung: Rung, *, alive: bool) -> str:
    latency = f", TTFT p99 {rung.ttft_ms.p99:,.0f} ms" if rung.ttft_ms else ""
    died = "" if alive else "; the server died"
    tok_s = f"{rung_text(rung)} tok/s" if rung.usable else rung_text(rung)
    return f"{rung.completed} completed in {seconds(rung.duration_s)}, {tok_s}{latency}{died}"


def _duration(kind: str, answer: Any) -> float:
    for name in DURATIONS.get(kind, ()):
        answer = answer.get(name) if isinstance(answer, dict) else None
    return float(answer) if isinstance(answer, int | float) else 0.0


def _spread(since: list[Moment], passed_s: float) -> list[Moment]:
    """The time that no answer accounts for goes to the effects that do not say how long they took."""
    silent = sum(m.kind == "effect" and not m.took_s for m in since)
    left = max(0.0, passed_s - sum(m.took_s for m in since))
    return [replace(m, took_s=left / silent) if m.kind == "effect" and not m.took_s else m for m in since]
