"""When launches of two runs differ by noise alone, and how the store keeps what is compared."""

from typing import Any

from moeagent.memory.ledger import Ledger
from moeagent.memory.records import (
    Record,
    Rung,
    Scope,
    ServerConfig,
    Workload,
    canonical_json,
    fingerprint,
)

LEFT_OUT = {"gpu", "raw", "failure_examples"}
"""Parts of a rung that no score rests on."""


class Alike(Record):
    """What must agree for the launches of two runs to differ by noise alone."""

    machine: str
    """Identity of the host."""
    scope: Scope
    workload: Workload
    load_from: str
    config: ServerConfig
    """The baseline."""

    @property
    def key(self) -> str:
        """Equal for runs that are alike; the seed of the prompts may differ."""
        workload = self.workload.model_dump(mode="json", exclude={"seed"})
        return fingerprint({**self.model_dump(mode="json"), "workload": workload})


def alike_of(header: dict[str, Any], ledger: Ledger) -> str | None:
    """The key of a run; None while it has no baseline."""
    if ledger.facts is None or ledger.baseline is None:
        return None
    settings = header["settings"]
    return Alike(
        machine=ledger.facts.host.machine_id,
        scope=ledger.facts.scope,
        workload=Workload.model_validate(settings["workload"]),
        load_from=settings.get("load_from", "auto"),
        config=ledger.baseline,
    ).key


def rung_text(rung: Rung) -> str:
    """A rung as the store keeps it."""
    return canonical_json(rung.model_dump(mode="json", exclude=LEFT_OUT, exclude_defaults=True))
