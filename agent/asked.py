"""What a running server is asked besides its load: settings, prompt lengths, answers, the user's check."""

import json
from collections.abc import Sequence
from typing import Any

from moeagent.agent.reach import Reach
from moeagent.agent.rung_load import DEATH_S
from moeagent.memory.errors import HostError, MoeagentError, RemoteError
from moeagent.memory.records import ServerConfig
from moeagent.memory.tape.lines import Json
from moeagent.tools.load.probe import ask, probe
from moeagent.tools.load.probe import calibrate as calibrated
from moeagent.tools.load.spec import Target
from moeagent.tools.output_check.sample import OutputSample
from moeagent.tools.output_check.task import TaskResult

INFO_TIMEOUT_S = 20.0
CALIBRATE_S = 60.0
"""Longest time for each of the prompts that tell how many tokens a word is."""
FIRST_PROMPT_S = 600.0
"""The first prefill may compile kernels: as long as a request may wait for its first byte in a rung."""


def server_info(reach: Reach, launch: str, config: ServerConfig) -> dict[str, Any] | None:
    """The engine's own word on its settings; None where it has no endpoint for it."""
    path = reach.engine.load.info_path
    if path is None:
        return None
    info = reach.through(
        launch, config, lambda target: ask(target, path, INFO_TIMEOUT_S), "asking for its settings"
    )
    # Servers tell their whole command line, keys included.
    return json.loads(reach.servers.mask(json.dumps(info))) if isinstance(info, dict) else None


def calibrate(reach: Reach, launch: str, config: ServerConfig, input_len: int) -> Json:
    """How many words make a prompt of the workload's length on this server."""
    timeout_s = min(CALIBRATE_S, reach.settings.rung_timeout_s)
    try:
        found = reach.through(
            launch,
            config,
            lambda target: calibrated(target, input_len, timeout_s=timeout_s),
            "counting its tokens",
        )
    except RemoteError:
        raise
    except HostError as error:
        return {"words": None, "problem": str(error)}
    return {
        "words": found.words,
        "problem": "" if found.measured else "the server counts no prompt tokens",
    }


def first_prompt(reach: Reach, launch: str, config: ServerConfig, words: int) -> Json:
    """Ask the server that has just become ready for its first long prefill."""

    timeout_s = min(FIRST_PROMPT_S, reach.settings.rung_timeout_s)

    def asked(target: Target) -> str:
        try:
            probe(target, words, timeout_s=timeout_s, seed=f"first/{launch}", exact=False)
        except RemoteError:
            raise
        except MoeagentError as error:
            return str(error)
        return ""

    problem = reach.through(launch, config, asked, "asking it for its first long prompt")
    if problem:
        # What it says while it dies belongs into its log.
        reach.servers.settle(launch, DEATH_S)
    return {"problem": problem}


def sample_outputs(reach: Reach, launch: str, config: ServerConfig, asked: Json) -> Json:
    """Greedy answers for the output check."""
    from moeagent.tools.output_check.collect import collect

    def answered(target: Target) -> OutputSample:
        return collect(
            target.base_url,
            model=target.model,
            prompts=asked["prompts"],
            batch_sizes=asked["batch_sizes"],
            max_tokens=asked["max_tokens"],
            timeout_s=reach.settings.rung_timeout_s,
        )

    sample = reach.through(launch, config, answered, "asking it for its answers")
    return {"sample": sample.model_dump(mode="json")}


def check_task(
    reach: Reach, launch: str, config: ServerConfig, command: Sequence[str], timeout_s: float
) -> Json:
    """Run the user's own check on this machine against the server."""
    from moeagent.tools.output_check.task import run_task

    def asked(target: Target) -> TaskResult:
        env = {
            "MOEAGENT_BASE_URL": target.base_url,
            "OPENAI_BASE_URL": f"{target.base_url}/v1",
            "MOEAGENT_MODEL": target.model,
        }
        return run_task(command, env, timeout_s=timeout_s, on_wait=reach.stop.check)

    found = reach.through(launch, config, asked, "the task check")
    told = reach.servers.mask(found.told)
    return found.model_copy(update={"told": told}).model_dump(mode="json")
