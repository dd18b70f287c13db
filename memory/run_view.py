"""A run as its readers see it: the hypothesis log as one JSON-ready object, derived from the tape alone."""

from collections.abc import Iterable
from typing import Any

from moeagent.memory.collector import collector_paused
from moeagent.memory.ledger import Ledger, last_hypotheses
from moeagent.memory.records import Effect, Hypothesis, Launch, ServerConfig, Verdict
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.tape.lines import Entry, Json, TapeFile


class RunView:
    """Header and ledger of one run, with the questions that log and report ask of them."""

    def __init__(
        self,
        run: str,
        header: Json,
        ledger: Ledger,
        ended: Json | None = None,
        changed: Json | None = None,
        goal: Json | None = None,
    ) -> None:
        self.run = run
        self.header = header
        self.ledger = ledger
        self._ended = ended
        self.changed: Json = changed or {}
        """Settings that a fork began with in place of its parent's."""
        self.goal_settings: Json = goal or header["settings"]["goal"]
        """The goal with its constraints as it is by now: a fork may have another than its tape began with."""

    @classmethod
    def read(cls, folder: RunFolder) -> "RunView":
        """From the run's tape, without running the loop."""
        with collector_paused():
            return cls.of_tape(folder.read_tape())

    @classmethod
    def read_last(cls, folder: RunFolder, count: int) -> tuple["RunView", int]:
        """With the last so many hypotheses only, and how many are left out: quick on a long run."""
        with collector_paused():
            tape = folder.read_tape()
            needed, left_out = last_hypotheses(tape.entries, count)
            return cls._of(tape, needed), left_out

    @classmethod
    def of_tape(cls, tape: TapeFile) -> "RunView":
        """From a tape that was read already."""
        return cls._of(tape, tape.entries)

    @classmethod
    def _of(cls, tape: TapeFile, entries: Iterable[Entry]) -> "RunView":
        last = tape.entries[-1]
        ended = last.body if last.type == "marker" and last.body["marker"] != "resume" else None
        ledger = Ledger.from_entries(entries)
        return cls(tape.header["run"], tape.header, ledger, ended, _changed(tape), _goal(tape))

    def with_ledger(self, ledger: Ledger) -> "RunView":
        """The same run with other decisions."""
        return RunView(self.run, self.header, ledger, self._ended, self.changed, self.goal_settings)

    @property
    def parent(self) -> tuple[str, int] | None:
        """(run, tape line) that this run goes on from, where it is a fork or was salvaged."""
        parent = self.header.get("parent")
        return (str(parent["run"]), int(parent["line"])) if parent else None

    @property
    def simulated(self) -> bool:
        """Whether the figures come from the simulated machine."""
        return self.ledger.facts is not None and self.ledger.facts.scope.simulated

    @property
    def goal(self) -> str:
        """The goal's name."""
        return str(self.goal_settings["name"])

    @property
    def ladder(self) -> tuple[int, ...]:
        """The concurrencies of the workload."""
        return tuple(self.header["settings"]["workload"]["ladder"])

    @property
    def best(self) -> ServerConfig | None:
        """The best configuration so far: the baseline until a verdict says improved."""
        return self.ledger.incumbent.config if self.ledger.incumbent else None

    @property
    def best_verdict(self) -> Verdict | None:
        """The verdict that made the best configuration the best; None for the baseline."""
        incumbent = self.ledger.incumbent
        return self.ledger.verdict(incumbent.hypothesis) if incumbent and incumbent.hypothesis else None

    @property
    def gain(self) -> Effect | None:
        """The gain that a headline may show: from fresh launches where there are any, else the verdict's.

        None where fresh launches refuted it.
        """
        conclusion = self.ledger.conclusion
        if conclusion and conclusion.confirmation == "refuted":
            return None
        if conclusion and conclusion.confirmed_gain:
            return conclusion.confirmed_gain
        return self.best_verdict.supported_gain if self.best_verdict else None

    @property
    def gain_source(self) -> str:
        """What the gain rests on, in words."""
        conclusion = self.ledger.conclusion
        if conclusion and conclusion.confirmation == "confirmed":
            return f"over the baseline, {conclusion.confirmation_reason}"
        told = f"; {conclusion.confirmation_reason}" if conclusion and conclusion.confirmation_reason else ""
        return f"over the configuration it was tried against{told}"

    @property
    def status(self) -> str:
        """finished, stopped, failed, awaiting approval, or `started` while none of these was reached."""
        if self._ended:
            return str(self._ended["marker"])
        return self.ledger.conclusion.status if self.ledger.conclusion else "started"

    @property
    def reason(self) -> str:
        """Why the run ended; empty while it has not."""
        if self._ended:
            return str(self._ended["reason"])
        return self.ledger.conclusion.reason if self.ledger.conclusion else ""

    def to_json(self) -> dict[str, Any]:
        """The hypothesis log, with everything that a program may want of it."""
        ledger = self.ledger
        return {
            "run": self.run,
            "status": self.status,
            "reason": self.reason,
            "simulated": self.simulated,
            "parent": self.header.get("parent"),
            "changed": self.changed,
            "goal": self.goal_settings,
            "workload": self.header["settings"]["workload"],
            "host": ledger.facts.host.model_dump(mode="json") if ledger.facts else None,
            "scope": ledger.facts.scope.model_dump(mode="json") if ledger.facts else None,
            "baseline": self._baseline(),
            "best": self._best(),
            "hypotheses": [self._hypothesis(h) for h in ledger.hypotheses],
            "rejections": [r.model_dump(mode="json") for r in ledger.rejections],
            "limits": [limit.model_dump(mode="json") for limit in ledger.limits],
            "approvals": [a.model_dump(mode="json") for a in ledger.approvals],
            "notes": [n.model_dump(mode="json") for n in ledger.notes],
        }

    def _baseline(self) -> dict[str, Any] | None:
        config = self.ledger.baseline
        if config is None:
            return None
        launches = self.ledger.launches_for(None)
        return {"config": config.model_dump(mode="json"), "launches": [_launch(x) for x in launches]}

    def _best(self) -> dict[str, Any] | None:
        if self.best is None:
            return None
        gain = self.gain
        return {
            "config": self.best.model_dump(mode="json"),
            "hypothesis": self.ledger.incumbent.hypothesis if self.ledger.incumbent else None,
            "gain": gain.model_dump(mode="json") if gain else None,
            "gain_source": self.gain_source if gain else "",
            "command": self.command_of(self.best),
        }

    def command_of(self, config: ServerConfig) -> str | None:
        """The command with which this configuration was launched last."""
        launches = self.ledger.launches_of(config)
        return launches[-1].command if launches else None

    def _hypothesis(self, hypothesis: Hypothesis) -> dict[str, Any]:
        verdict = self.ledger.verdict(hypothesis.id)
        return {
            **hypothesis.model_dump(mode="json"),
            "launches": [_launch(x) for x in self.ledger.launches_for(hypothesis.id)],
            "pivots": [p.model_dump(mode="json") for p in self.ledger.pivots_for(hypothesis.id)],
            "verdict": verdict.model_dump(mode="json") if verdict else None,
        }


def _launch(launch: Launch) -> dict[str, Any]:
    told: dict[str, Any] = launch.model_dump(mode="json", by_alias=True)
    for rung, shown in zip(launch.rungs, told["rungs"], strict=True):
        shown["energy_per_token_j"] = rung.energy_per_token_j
    return told


def _changed(tape: TapeFile) -> Json:
    parent = tape.header.get("parent")
    markers = (e.body for e in tape.entries if e.type == "marker" and parent and e.line_no > parent["line"])
    return next((body.get("amend", {}) for body in markers if body["marker"] == "resume"), {})


def _goal(tape: TapeFile) -> Json:
    goal: Json = dict(tape.header["settings"]["goal"])
    for entry in tape.entries:
        if entry.type == "marker":
            goal |= entry.body.get("amend", {}).get("goal", {})
    return goal
