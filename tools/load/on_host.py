"""A rung from the GPU host itself: the archive is put there and run by the host's own Python."""

import hashlib
import json

from moeagent.memory.errors import HostError
from moeagent.tools.hosts.protocol import Command, Host
from moeagent.tools.load.bundle import loadgen_archive
from moeagent.tools.load.job import build_job
from moeagent.tools.load.runner import GRACE_S, outcome_of, read_result
from moeagent.tools.load.spec import RungOutcome, RungSpec, Target

OLD_PYTHON = "import sys; sys.exit(sys.version_info < (3, 9))"
SHOWN = 400
"""Characters of the host's message."""


def run_rung_on_host(
    host: Host,
    target: Target,
    spec: RungSpec,
    *,
    folder: str,
    python: str = "python3",
    deadline_s: float = 3600.0,
) -> RungOutcome:
    """As `run_rung`, but from `host`, without progress; the target's URL is as the host sees it.

    HostError when the host has no Python 3.9 or the generator cannot run there.
    """
    if not host.run(Command((python, "-c", OLD_PYTHON)), timeout_s=30).ok:
        raise HostError(
            f"{host.name}: {python} is missing or older than 3.9: measure from this machine instead"
        )
    archive = loadgen_archive()
    path = f"{folder}/loadgen-{hashlib.sha256(archive).hexdigest()[:12]}.pyz"
    host.put(path, archive)
    job = build_job(target, spec, deadline_s=deadline_s)
    done = host.run(
        Command((python, path)), timeout_s=deadline_s + 2 * GRACE_S, stdin=json.dumps(job).encode()
    )
    if not done.ok and b'"error"' not in done.stdout:
        said = done.stderr.decode("utf-8", "replace")[-SHOWN:]
        raise HostError(f"{host.name}: the load generator ended with status {done.exit_code}: {said}")
    return outcome_of(read_result(done.stdout.splitlines(), None), spec, job)
