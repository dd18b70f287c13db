"""What was read out of a log before judging: hits, exceptions, stages, flags in force, the engine."""

import bisect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from moeagent.memory.records.diagnosis import Stage
from moeagent.tools.diagnosis.catalogue import Catalogue, Mark, When, compiled
from moeagent.tools.diagnosis.exceptions import Raised, find_exceptions, frame_lines
from moeagent.tools.diagnosis.flags import flags_in_force
from moeagent.tools.diagnosis.lines import Line, seconds
from moeagent.tools.diagnosis.log import Log
from moeagent.tools.diagnosis.matching import Hit, Matcher, number

ENGINES = {
    "sglang": re.compile(
        r"sglang|sgl_kernel|sgl-kernel|server_args=|Scheduler hit an exception|Load weight (?:begin|end)"
        r"|(?:Prefill|Decode) batch[.,] #|max_total_num_tokens|self\.watchdog_timeout"
        r"|^\[\d{4}[\d :.-]+(?: [A-Z]P\d+)+\]"
    ),
    "vllm": re.compile(r"vllm|vLLM|EngineCore|api_server\.py"),
    "llamacpp": re.compile(r"llama_|llama-server|ggml_|GGML_|\bsrv  |slot (?:launch|release)|gguf"),
}
"""Words that only one engine prints."""


_COMPLAINS = re.compile(
    r"(?i)\b(?:error|fatal|failed|failure|exception|panic|assertion|timeout|warning)\b ?[:(,`'\[]"
)
"""A line by which any program complains, whatever its format."""
REPORTED_WITHIN = 200
"""Lines in which an exception still reports a message that native code printed before it."""


@dataclass(frozen=True)
class Evidence:
    """One log with its hits; answers the questions that conditions and rules ask."""

    log: Log
    engine: str
    hits: Sequence[Hit]
    stage_hint: Stage | None = None

    @classmethod
    def gather(cls, log: Log, catalogue: Catalogue, engine: str | None, stage: Stage | None) -> "Evidence":
        """Match every line once. An engine that is not given is told by its words."""
        named = engine_name(engine) or detect_engine(log)
        matcher = Matcher(catalogue)
        frames = frame_lines(log)
        hits = [
            hit
            for line in log.lines
            for hit in matcher.match(line)
            if _fits(hit, named) and not (hit.signature.kind == "cause" and line.no in frames)
        ]
        return cls(log, named, hits, stage)

    @property
    def is_log(self) -> bool:
        """Whether anything in the text comes from a program's log."""
        if self.hits or self.raised:
            return True
        return any(line.when or line.level or _COMPLAINS.search(line.body) for line in self.log.lines)

    @cached_property
    def by_line(self) -> dict[int, list[Hit]]:
        """Hits by line number."""
        table: dict[int, list[Hit]] = {}
        for hit in self.hits:
            table.setdefault(hit.line.no, []).append(hit)
        return table

    @cached_property
    def hidden(self) -> frozenset[int]:
        """Numbers of lines whose words mean nothing."""
        return frozenset(hit.line.no for hit in self.hits if hit.signature.hides_line)

    @cached_property
    def raised(self) -> dict[int, Raised]:
        """Exceptions by the number of the line that names them."""
        return {one.line.no: one for one in find_exceptions(self.log) if one.line.no not in self.hidden}

    @cached_property
    def flags(self) -> dict[str, str]:
        """Flags and environment variables in force, as the log shows them."""
        return flags_in_force(self.log)

    def marks(self, *marks: Mark) -> list[Line]:
        """Lines that carry one of the marks, in order."""
        table = self._marked
        return (
            table.get(marks[0], [])
            if len(marks) == 1
            else sorted((line for mark in marks for line in table.get(mark, ())), key=lambda line: line.no)
        )

    @cached_property
    def _marked(self) -> dict[Mark, list[Line]]:
        table: dict[Mark, list[Line]] = {}
        for hit in self.hits:
            if hit.signature.mark is not None:
                table.setdefault(hit.signature.mark, []).append(hit.line)
        return table

    @cached_property
    def _stages(self) -> tuple[list[int], list[Stage]]:
        passed = [(h.line.no, h.signature.stage) for h in self.hits if h.signature.kind == "health"]
        known = [(no, stage) for no, stage in passed if stage]
        return [no for no, _ in known], [stage for _, stage in known]

    def stage_at(self, no: int) -> Stage:
        """The server's stage when it printed line `no`: that of the last progress line at or above it."""
        numbers, stages = self._stages
        at = bisect.bisect_right(numbers, no)
        if at:
            return stages[at - 1]
        return self.stage_hint or ("serving" if stages and stages[0] == "serving" else "load")

    def raised_for(self, line: Line) -> Raised | None:
        """The exception that the line names, or whose message the line continues."""
        if line.no in self.raised:
            return self.raised[line.no]
        for above in self.log.around(line.no, 12, -1):
            one = self.raised.get(above.no)
            if one is not None and line.body in one.continued:
                return one
        return None

    def frames(self, line: Line) -> tuple[str, ...]:
        """Stack frames that lead to the line, or those just below it where the engine prints them after."""
        raised = self.raised_for(line)
        if raised is not None and raised.frames:
            return raised.frames
        if raised is None:
            raised = next((one for one in self.raised.values() if one.asserted is line), None)
            if raised is not None:
                return raised.frames
        below = tuple(
            b.body for b in self.log.around(line.no, 0, 24) if b.no > line.no and b.body.startswith("  File ")
        )
        return below or self._frames_reported_after(line)

    def _frames_reported_after(self, line: Line) -> tuple[str, ...]:
        """Frames of the exception that reports a message which was printed without any."""
        if line.no in self.raised:
            return ()
        later = (one for no, one in self.raised.items() if line.no < no <= line.no + REPORTED_WITHIN)
        return next((one.frames for one in later if one.frames), ())

    def seen(self, pattern: str) -> Line | None:
        """The first line that matches, hidden lines excepted."""
        return self._span(pattern)[0]

    def _span(self, pattern: str) -> tuple[Line | None, Line | None]:
        """The first and the last line that match, found once for each pattern."""
        if pattern not in self._spans:
            rx = compiled(pattern)
            matching = (line for line in self._shown if rx.search(line.text))
            first = next(matching, None)
            last = (
                next((line for line in reversed(self._shown) if rx.search(line.text)), None)
                if first
                else None
            )
            self._spans[pattern] = (first, last)
        return self._spans[pattern]

    @cached_property
    def _spans(self) -> dict[str, tuple[Line | None, Line | None]]:
        return {}

    @cached_property
    def _shown(self) -> list[Line]:
        return [line for line in self.log.lines if line.no not in self.hidden]

    def _before(self, pattern: str | None, line: Line) -> bool:
        first = self.seen(pattern) if pattern else None
        return pattern is None or (first is not None and first.no < line.no)

    def _after(self, pattern: str | None, line: Line) -> bool:
        last = self._span(pattern)[1] if pattern else None
        return pattern is None or (last is not None and last.no > line.no)

    def holds(self, when: When | None, line: Line, numbers: dict[str, str]) -> bool:
        """Whether a condition is met around a root line."""
        if when is None:
            return True
        return (
            (not when.engine or self.engine in when.engine)
            and (not when.stage or self.stage_at(line.no) in when.stage)
            and _matches(when.line, [line.text])
            and _matches(when.trace, self.frames(line))
            and self._before(when.before, line)
            and self._after(when.after, line)
            and (when.seen is None or self.seen(when.seen) is not None)
            and (when.unseen is None or self.seen(when.unseen) is None)
            and (when.flag is None or self._flag(when.flag))
            and (when.noflag is None or not self._flag(when.noflag))
            and all(_compares({**self.flags, **numbers}, *one) for one in when.compare)
        )

    def _flag(self, wanted: str) -> bool:
        name, _, value = wanted.partition("=")
        found = self.flags.get(name.lstrip("-").replace("-", "_"))
        if found is None or found.lower() in ("false", "none", ""):
            return False
        return not value or found == value

    @cached_property
    def clock_gap(self) -> tuple[Line, float] | None:
        """The last progress line and the seconds from it to the last stamp, when both are stamped."""
        progress = [h.line for h in self.hits if h.signature.kind == "health" and h.line.when]
        stamped = [line for line in self.log.lines[-200:] if line.when]
        if not progress or not stamped:
            return None
        start, end = seconds(progress[-1].when), seconds(stamped[-1].when)
        comparable = len(progress[-1].when) == len(stamped[-1].when)
        return (progress[-1], end - start) if start is not None and end is not None and comparable else None


def engine_name(name: str | None) -> str:
    """The project's own spelling of an engine (sglang, vllm, llamacpp); empty for any other."""
    plain = re.sub(r"[^a-z]", "", (name or "").lower())
    return next(
        (known for known in ENGINES if known in plain or (known == "llamacpp" and "llama" in plain)), ""
    )


def detect_engine(log: Log) -> str:
    """The engine whose own words stand on most lines; empty when none does."""
    counts = {name: sum(bool(rx.search(line.text)) for line in log.lines) for name, rx in ENGINES.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else ""


def _fits(hit: Hit, engine: str) -> bool:
    engines = hit.signature.engine
    return "any" in engines or not engine or engine in engines


def _matches(pattern: str | None, texts: Sequence[str]) -> bool:
    if pattern is None:
        return True
    rx = compiled(pattern)
    return any(rx.search(text) for text in texts)


def _compares(numbers: dict[str, str], left: str, sign: str, right: str) -> bool:
    a, b = number(numbers.get(left, left)), number(numbers.get(right, right))
    if a is None or b is None:
        return False
    return a < b if sign == "<" else a > b
