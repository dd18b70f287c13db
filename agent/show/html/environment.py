"""The appendix: machine, engine, versions, configurations."""

from moeagent.agent.show.curves import launched
from moeagent.agent.show.html.table import Table, table
from moeagent.agent.show.text import config_text, in_force_text
from moeagent.memory.run_view import RunView


def environment_table(view: RunView) -> Table | None:
    """Host, engine, model and workload; None before the survey."""
    facts = view.ledger.facts
    if facts is None:
        return None
    host, scope = facts.host, facts.scope
    workload = view.header["settings"]["workload"]
    rows = [
        ["host", host.name],
        ["GPUs", f"{scope.gpu_count} x {scope.gpu}" if scope.gpu_count else scope.gpu],
        ["driver, CUDA", f"{host.driver or 'unknown'}, {host.cuda or 'unknown'}"],
        ["CPU cores, RAM", f"{host.cpu_cores or 'unknown'}, {host.ram_gib or 'unknown'} GiB"],
        ["engine", f"{facts.engine} {facts.engine_version or '(version unknown)'}"],
        ["flags known", f"{facts.knob_count}, from its {facts.knobs_source or 'catalogue'}"],
        ["model", facts.model.path],
        ["workload", f"{workload['dataset']}, {workload['input_len']} in / {workload['output_len']} out"],
        ["concurrency", ", ".join(map(str, workload["ladder"]))],
        ["seed", str(workload["seed"])],
        ["moeagent, loop", " and ".join(str(view.header.get(k, "unknown")) for k in ("moeagent", "loop"))],
        ["begun", str(view.header["created_at"])],
        *(["found by the survey", problem] for problem in (*facts.problems, *host.warnings)),
    ]
    return table("Environment", ("", ""), rows)


def configurations_table(view: RunView) -> Table:
    """Each launched configuration once: as requested, and where the engine says otherwise."""
    rows = [
        [
            each.label,
            ", ".join(launch.id for launch in each.launches),
            config_text(each.config),
            in_force_text(each.launches[-1]),
            each.launches[-1].command,
        ]
        for each in launched(view)
    ]
    head = ("configuration", "launches", "requested", "in force where it differs", "command")
    return table("Configurations", head, rows)
