"""Going through a recorded run on a terminal: key by key, or at the speed at which it happened."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console

from moeagent.agent.show.moments import Moment
from moeagent.agent.show.plain import Text
from moeagent.agent.show.seen import Seen
from moeagent.agent.show.text import seconds
from moeagent.agent.show.visible import visible

KEYS = "space next  d decision  h hypothesis  b back  s what it saw  q quit"
SEEN_CHARS = 20_000
STYLES = {"effect": "dim", "decision": "", "marker": "yellow"}


def show_moment(moment: Moment, console: Console) -> None:
    """One moment with its tape line and the time that it took."""
    took = f" ({seconds(moment.took_s)})" if moment.took_s else ""
    console.print(Text(f"line {moment.line}  {moment.name}{took}", style="bold blue"))
    for line in moment.told:
        console.print(line, style=STYLES[moment.kind])


def play(
    found: Sequence[Moment], console: Console, speed: float | None, sleep: Callable[[float], None]
) -> None:
    """Every moment in turn; with a speed, each effect takes its recorded time divided by it."""
    for moment in found:
        if speed:
            sleep(moment.took_s / speed)
        show_moment(moment, console)


@dataclass
class Stepper:
    """One person at a terminal."""

    found: Sequence[Moment]
    seen: Seen
    console: Console
    key: Callable[[], str]
    """Waits for one key."""
    at: int = 0

    def run(self) -> None:
        """Until the person has seen enough, or the run is over."""
        moves = {"d": self._to_decision, "h": self._to_hypothesis, "b": self._back, "s": self._saw}
        self._show()
        while (pressed := self._ask()) not in ("q", "\x04", ""):
            if pressed in moves:
                moves[pressed]()
            elif pressed in (" ", "n", "\r", "\n"):
                self._go(self.at + 1)
            else:
                self.console.print(Text(KEYS, style="dim"))

    def _ask(self) -> str:
        self.console.print(
            Text(f"[{self.at + 1} of {len(self.found)}] {KEYS}", style="dim"),
            end="\r",
            no_wrap=True,
            overflow="crop",
        )
        pressed = self.key()
        self.console.print(" " * (self.console.width - 1), end="\r")
        return pressed

    def _show(self) -> None:
        show_moment(self.found[self.at], self.console)

    def _go(self, to: int) -> None:
        if 0 <= to < len(self.found):
            self.at = to
            self._show()
        else:
            end = "this is where the run begins" if to < 0 else "the recording ends here"
            self.console.print(Text(end, style="yellow"))

    def _back(self) -> None:
        self._go(self.at - 1)

    def _to_decision(self) -> None:
        self._go(self._next(lambda m: m.kind == "decision"))

    def _to_hypothesis(self) -> None:
        self._go(self._next(lambda m: m.name == "hypothesis"))

    def _next(self, wanted: Callable[[Moment], bool]) -> int:
        later = (n for n in range(self.at + 1, len(self.found)) if wanted(self.found[n]))
        return next(later, len(self.found))

    def _saw(self) -> None:
        moment = self.found[self.at]
        told = self.seen.before(moment.line) if moment.kind == "decision" else "what is shown: no decision"
        self.console.print(Text("the agent saw:", style="bold"))
        # One of these texts may be long, and the terminal scrolls.
        for line in visible(told, limit=SEEN_CHARS).split("\n"):
            self.console.print(Text(f"  {line}"), soft_wrap=True)
