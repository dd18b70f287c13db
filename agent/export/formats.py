"""The export formats by name."""

from collections.abc import Callable

from moeagent.agent.export.as_json import json_document
from moeagent.agent.export.containers import compose_file, kubernetes_deployment
from moeagent.agent.export.records import Export
from moeagent.agent.export.shell import shell_script
from moeagent.agent.export.systemd import systemd_unit

FORMATS: dict[str, Callable[[Export], str]] = {
    "sh": shell_script,
    "systemd": systemd_unit,
    "compose": compose_file,
    "k8s": kubernetes_deployment,
    "json": json_document,
}
