"""Running another tool where it is installed, and trusting it only as far as its exit and its file agree."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from moeagent.memory.errors import HostError, InputError
from moeagent.tools.load.adapters.commands import ForeignRun, command
from moeagent.tools.load.adapters.flat import read_flat
from moeagent.tools.load.adapters.guidellm import read_guidellm
from moeagent.tools.load.adapters.records import ForeignRung, ToolName

SHOWN = 600
"""Characters of a failed tool's last messages."""


def run_tool(tool: ToolName, run: ForeignRun, *, launch: Sequence[str], timeout_s: float) -> ForeignRung:
    """One rung by another tool on this machine. HostError when it fails, hangs or leaves no single result."""
    path = Path(run.result)
    if path.exists():
        raise InputError(f"{path} exists: these tools append, give a fresh result file")
    argv = command(tool, run, launch=launch)
    try:
        done = subprocess.run(argv, capture_output=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise HostError(
            f"{tool} did not end within {timeout_s:.0f} s: it has no time-out of its own"
        ) from error
    except OSError as error:
        raise HostError(
            f"{tool} cannot be started: {error}; install it, or correct its launch command"
        ) from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace")[-SHOWN:]
        raise HostError(f"{tool} ended with status {done.returncode}: {said}")
    return counted(single(tool, path, run.requests), run.output_len)


def counted(found: ForeignRung, output_len: int) -> ForeignRung:
    """The rung with a remark where its tokens are not those of answers of the length asked for."""
    rung = found.rung
    due = rung.completed * output_len
    if rung.output_tokens is None or rung.output_tokens == due:
        return found
    remark = f"{found.tool} counts {rung.output_tokens} tokens for {rung.completed} answers of {output_len}"
    return found.model_copy(update={"rung": rung.model_copy(update={"note": f"{rung.note}; {remark}"})})


def single(tool: ToolName, path: Path, asked: int) -> ForeignRung:
    """The one result in a tool's fresh file."""
    if not path.exists():
        raise HostError(f"{tool} ended without an error and without a result in {path}")
    found = read_guidellm(path) if tool == "guidellm" else read_flat(path, tool, asked=asked)
    if len(found) != 1:
        raise HostError(f"{path} has {len(found)} results where {tool} should have written one")
    return found[0]
