"""From a run and one of its launches to an export."""

import re

from moeagent.agent.export.choice import Choice, measured_text
from moeagent.agent.export.recorded import recorded_start
from moeagent.agent.export.records import Export
from moeagent.agent.show.text import SIMULATED
from moeagent.memory.errors import InputError
from moeagent.memory.run_view import RunView

_LABEL = 63
_OWN = "MOEAGENT_TAG, MOEAGENT_FOLDER and SPT_NOENV, by which moeagent finds its servers again, are left out"


def make_export(view: RunView, choice: Choice, image: str | None = None) -> Export:
    """The export of a launch. Raises InputError for a launch that was never started."""
    launch, facts = choice.launch, view.ledger.facts
    if not launch.command:
        raise InputError(f"{launch.id} of run {view.run} was never started: there is no command to export")
    start = recorded_start(launch.command)
    about = [f"moeagent run {view.run}, launch {launch.id}: {choice.why}"]
    about += [choice.warning] if choice.warning else []
    about += [SIMULATED] if launch.simulated else []
    if facts is not None:
        where = f"{facts.scope.gpu_count} x {facts.scope.gpu}" if facts.scope.gpu_count else facts.scope.gpu
        about.append(f"{facts.engine} {facts.engine_version or ''} on {facts.host.name}, {where}")
    about.append(measured_text(launch))
    about.append(f"Command and variables as measured; the rest of the environment is the host's; {_OWN}.")
    about.append("It listens where it did when it was measured: see --host and --port.")
    if start.secrets:
        about.append(f"Secrets are not exported; set these variables: {', '.join(start.secrets)}")
    return Export(
        name=_label(f"moeagent-{view.run}-{launch.id}"),
        start=start,
        model=facts.model.path if facts else "",
        gpus=len(facts.host.gpus) if facts else 0,
        about=tuple(about),
        image=image,
    )


def _label(text: str) -> str:
    """The text as a DNS label; the end tells launches apart, so the beginning is cut."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[-_LABEL:].strip("-")
