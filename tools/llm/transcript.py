"""What the language model saw and said in a run, read from its tape."""

from pathlib import Path

from moeagent.memory.records import Record
from moeagent.memory.tape.lines import read_tape
from moeagent.tools.llm.records import Completion, CompletionRequest, Message

KIND = "complete"
"""Under which the loop records a completion."""


class Exchange(Record):
    """One completion of the run."""

    step: int
    """1, 2, ... in the order of the run, the probe included."""
    line_no: int
    """Of the request, in the tape."""
    messages: tuple[Message, ...]
    completion: Completion | None
    """None when the run ended before the answer."""


def read_exchanges(tape: Path) -> tuple[Exchange, ...]:
    """Every completion of the tape. Raises InputError without a tape, TapeError for a damaged one."""
    entries = read_tape(tape).entries
    exchanges: list[Exchange] = []
    for at, entry in enumerate(entries):
        if entry.type != "request" or entry.body["kind"] != KIND:
            continue
        following = entries[at + 1].body if at + 1 < len(entries) else {}
        answered = following.get("response")
        request = CompletionRequest.model_validate(entry.body["request"])
        exchanges.append(
            Exchange(
                step=len(exchanges) + 1,
                line_no=entry.line_no,
                messages=tuple(Message.model_validate(m) for m in request.body["messages"]),
                completion=None if answered is None else Completion.model_validate(answered),
            )
        )
    return tuple(exchanges)
