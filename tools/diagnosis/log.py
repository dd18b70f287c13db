"""The log as the reasoning sees it: parsed lines, all of a short log or the telling parts of a huge one."""

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from moeagent.tools.diagnosis.lines import Line


@dataclass(frozen=True)
class Log:
    """Lines in file order; numbers have gaps where a huge log was thinned out."""

    lines: Sequence[Line]
    total: int
    """Physical lines in the source."""
    counts: dict[str, int] = field(default_factory=dict)
    """How often each signature matched over the whole source, where a scan counted."""

    @cached_property
    def _numbers(self) -> list[int]:
        return [line.no for line in self.lines]

    def index(self, no: int) -> int:
        """Position of line number `no`, or of the next kept line."""
        return bisect.bisect_left(self._numbers, no)

    def get(self, no: int) -> Line | None:
        """The line of that number, when it was kept."""
        at = self.index(no)
        return self.lines[at] if at < len(self.lines) and self.lines[at].no == no else None

    def around(self, no: int, before: int, after: int) -> Sequence[Line]:
        """Kept lines from `before` lines above to `after` lines below."""
        return self.lines[self.index(no - before) : self.index(no + after + 1)]

    def upwards(self, no: int) -> Iterator[Line]:
        """Kept lines above number `no`, nearest first."""
        return (self.lines[at] for at in range(self.index(no) - 1, -1, -1))

    def downwards(self, no: int) -> Iterator[Line]:
        """Kept lines below number `no`, nearest first."""
        return (self.lines[at] for at in range(self.index(no + 1), len(self.lines)))
