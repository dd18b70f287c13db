"""The flags in force, from what the log itself shows: argument dumps, echoed commands, environment notes."""

import re

from moeagent.tools.diagnosis.log import Log

_DUMP = re.compile(r"server_args=|non-default args:|args: Namespace\(|with config:|EngineArgs\(|ServerArgs\(")
_PAIR = re.compile(
    r"['\"]?(?P<name>[A-Za-z_]\w*)['\"]?\s*(?:=|: )\s*(?P<value>'[^']*'|\"[^\"]*\"|\[[^\]]*\]|[^,(){}\s]+)"
)
_COMMAND = re.compile(r"sglang\.launch_server|vllm serve|api_server|llama-server|sglang serve")
_OPTION = re.compile(r"(?<!\S)--?(?P<name>[a-zA-Z][\w-]*)(?:[= ](?P<value>[^\s-]\S*))?")
_ENVIRONMENT = re.compile(
    r"\b(?P<name>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=| set by environment to )(?P<value>\S+)"
)
_MAX_LENGTH = 20_000


def flags_in_force(log: Log) -> dict[str, str]:
    """Names with underscores (environment variables in capitals) and their values; the first dump wins."""
    flags: dict[str, str] = {}
    for line in log.lines:
        text = line.text[:_MAX_LENGTH]
        if _DUMP.search(text):
            for pair in _PAIR.finditer(text):
                flags.setdefault(pair["name"], pair["value"].strip("'\""))
        elif _COMMAND.search(text) and " -" in text:
            for option in _OPTION.finditer(text):
                flags.setdefault(option["name"].replace("-", "_"), option["value"] or "True")
        for variable in _ENVIRONMENT.finditer(text):
            flags.setdefault(variable["name"], variable["value"])
    return flags
