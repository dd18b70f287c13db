"""As a Docker Compose service and as a Kubernetes deployment; both are YAML with a `$` of its own.

Every text is written in double quotes, so that no reader takes 0o17, yes or 1e3 for anything but text.
"""

from typing import Any

from moeagent.agent.export.records import Export, comments
from moeagent.agent.export.words import Word, plain_text, spelled
from moeagent.memory.errors import InputError

_LAUNCHERS = ("docker", "podman", "nerdctl", "kubectl")
IMAGE_VARIABLE = "MOEAGENT_IMAGE"
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a mount point, not a temporary file
NO_IMAGE = "SET-THE-IMAGE"
"""Upper case is no image name, so that a cluster refuses it at once."""


def compose_file(export: Export) -> str:
    """A compose file with one service; `$$` is a dollar sign and `${NAME}` is filled from the environment."""
    _refuse_containers_inside(export)
    start = export.start
    image = f"${{{IMAGE_VARIABLE}:?set it to the image to run}}"
    service: dict[str, Any] = {
        "image": image if export.image is None else _compose_text(export.image),
        "entrypoint": [_compose(word) for word in start.argv],
        "environment": {name: _compose(value) for name, value in start.env.items()},
        "network_mode": "host",
        "ipc": "host",
        "restart": "unless-stopped",
    }
    if start.cwd is not None:
        service["working_dir"] = _compose_text(start.cwd)
    if folder := _folder(export):
        mount = {"type": "bind", "source": _compose_text(folder), "target": _compose_text(folder)}
        service["volumes"] = [{**mount, "read_only": True}]
    if export.gpus:
        device = {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    return _yaml(export, {"services": {export.name: service}})


def kubernetes_deployment(export: Export) -> str:
    """A deployment of one pod; `$$` is a dollar sign and `$(NAME)` a variable of the container."""
    _refuse_containers_inside(export)
    labels = {"app": export.name}
    volumes, mounts = [{"name": "shm", "emptyDir": {"medium": "Memory"}}], [_mount("shm", SHARED_MEMORY)]
    if folder := _folder(export):
        volumes.append({"name": "model", "hostPath": {"path": folder}})
        mounts.append({**_mount("model", folder), "readOnly": True})
    pod = {"hostNetwork": True, "containers": [_container(export, mounts)], "volumes": volumes}
    spec = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    head = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": export.name, "labels": labels},
    }
    return _yaml(export, {**head, "spec": spec})


def _container(export: Export, mounts: list[dict[str, Any]]) -> dict[str, Any]:
    start = export.start
    secrets = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": export.name, "key": name}}}
        for name in start.secrets
    ]
    own = [
        {"name": name, "value": _kubernetes(value)}
        for name, value in start.env.items()
        if name not in start.secrets
    ]
    container: dict[str, Any] = {
        "name": "server",
        "image": export.image or NO_IMAGE,
        "command": [_kubernetes(word) for word in start.argv],
        "env": [*secrets, *own],
        "volumeMounts": mounts,
    }
    if start.cwd is not None:
        container["workingDir"] = start.cwd
    if export.gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(export.gpus)}}
    return container


def _refuse_containers_inside(export: Export) -> None:
    program = plain_text(export.start.argv[0]).rpartition("/")[2]
    if program in _LAUNCHERS:
        raise InputError(
            f"the measured command starts a container itself ({program}), which belongs on the host: "
            "export it as sh or systemd"
        )


def _folder(export: Export) -> str | None:
    """The model's path where it is one: it is mounted where it was."""
    return export.model if export.model.startswith("/") else None


def _mount(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "mountPath": path}


def _compose(word: Word) -> str:
    return spelled(word, _compose_text, lambda name: f"${{{name}:?set {name} to the secret}}")


def _compose_text(text: str) -> str:
    return text.replace("$", "$$")


def _kubernetes(word: Word) -> str:
    return spelled(word, lambda text: text.replace("$", "$$"), lambda name: f"$({name})")


class _Quoted(str):
    """Text that is written in double quotes."""


def _yaml(export: Export, document: dict[str, Any]) -> str:
    import yaml

    yaml.SafeDumper.add_representer(
        _Quoted, lambda dumper, data: dumper.represent_scalar("tag:yaml.org,2002:str", str(data), style='"')
    )
    body = yaml.safe_dump(_quoted(document), sort_keys=False, width=float("inf"))
    return "\n".join([*comments(export), body])


def _quoted(value: Any) -> Any:
    match value:
        case str():
            return _Quoted(value)
        case dict():
            return {key: _quoted(inner) for key, inner in value.items()}
        case list():
            return [_quoted(inner) for inner in value]
    return value
