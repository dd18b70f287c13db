"""`moeagent status`."""

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunName, RunsRoot


def command(run: RunName, as_json: AsJson = False, runs: RunsRoot = DEFAULT_RUNS) -> None:
    """How a run stands now: current step, budget, last verdicts, the best so far. Works beside a live run.

    Example: moeagent status last
    """
    import time

    from moeagent.agent.show.as_json import print_json
    from moeagent.agent.show.panel import status_screen
    from moeagent.agent.show.status import standing
    from moeagent.agent.show.text import console
    from moeagent.memory.run_folder import find_run

    found = standing(find_run(runs, run))
    if as_json:
        print_json(found.to_json())
    else:
        console().print(status_screen(found, time.time()))
