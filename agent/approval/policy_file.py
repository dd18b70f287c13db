"""A policy in a file of its own: the same keys as [policy] in the settings, on the top level."""

from pathlib import Path

from pydantic import ValidationError

from moeagent.agent.approval.policy import ApprovalPolicy
from moeagent.agent.settings import read_settings_file
from moeagent.memory.errors import InputError


def read_policy(path: Path) -> ApprovalPolicy:
    """Raises InputError that names the file and the rule."""
    try:
        return ApprovalPolicy.model_validate(read_settings_file(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part + 1 if isinstance(part, int) else part) for part in first["loc"])
        raise InputError(
            f"{path}: {where or 'the policy'}: {first['msg']}. A rule is [[rule]] with an action (allow, "
            "ask, deny) and conditions (command, flags, env, source, risk_over, gpu_hours_over, cost_over)"
        ) from None
