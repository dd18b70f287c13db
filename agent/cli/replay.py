"""`moeagent replay`."""

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunName, RunsRoot


def command(run: RunName, as_json: AsJson = False, runs: RunsRoot = DEFAULT_RUNS) -> None:
    """Run a recorded campaign again, offline: no network, no SSH, no process.

    Exit code 0 when every request and decision is the recorded one, 7 at the first difference, which is
    shown; 6 for a damaged tape, 8 for a tape of another loop version.

    Example: moeagent replay last
    """
    from moeagent.agent.campaign import replay
    from moeagent.agent.show.as_json import print_json
    from moeagent.agent.show.plain import Text
    from moeagent.agent.show.text import console
    from moeagent.memory.run_folder import find_run

    result = replay(find_run(runs, run))
    if as_json:
        print_json(result)
        return
    console().print(
        Text(
            f"{result['run']}: replayed {result['events']} events and {result['decisions']} decisions "
            f"without a difference; the run {result['ended']}"
        )
    )
