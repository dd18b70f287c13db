"""A stand-in for a container runtime: behaves as `docker` does where moeagent depends on it, and as Slurm's
`srun`, `squeue` and `scancel` under those names.

What runs in a container is not below the client that started it: a supervisor of its own holds it, so it goes
on when the client is killed. Containers have ids, labels and states; `--rm` removes one that has ended.
`docker exec` starts a process in a container in the same way. State lies in the folder STANDIN_DOCKER.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HOME = Path(os.environ["STANDIN_DOCKER"])
VALUED = ("--label", "--env", "-e", "--network", "--name", "-v", "--gpus", "--workdir", "--user")
HIDDEN = "STANDIN_DOCKER_HIDDEN"
"""When set, what runs inside carries no variable of moeagent's: as if another user owned it."""


def main(words: list[str]) -> int:
    verb, *rest = words
    verbs = {
        "run": run, "exec": execute, "ps": ps, "stop": stop, "rm": remove, "logs": logs,
        "srun": srun, "squeue": squeue, "scancel": scancel,
    }  # fmt: skip
    if verb == "__supervise__":
        return supervise(rest[0])
    if verb not in verbs:
        print(f"docker: {verb!r} is not a docker command", file=sys.stderr)
        return 1
    return verbs[verb](rest)


def run(words: list[str]) -> int:
    options, (image, *command) = parsed(words)
    if not image.startswith("image"):
        print(f"docker: no such image: {image}", file=sys.stderr)
        return 125
    labels = dict(pair.split("=", 1) for pair in options.get("--label", []))
    return attached(command, options, labels=labels, rm="--rm" in options, kind="container")


def execute(words: list[str]) -> int:
    options, (name, *command) = parsed(words)
    if not any(c["id"] == name or c.get("name") == name for c in containers()):
        print(f"Error: no such container: {name}", file=sys.stderr)
        return 1
    return attached(command, options, labels={}, rm=True, kind="exec")


def srun(words: list[str]) -> int:
    options, command = parsed(words, valued=())
    name = options.get("--job-name", ["bash"])[0]
    options["--env"] = [name for name in os.environ if not name.startswith("STANDIN_")]
    return attached(command, options, labels={"job": name}, rm=True, kind="step")


def squeue(words: list[str]) -> int:
    for record in containers("step"):
        print(f"{record['id']} {record['labels']['job']}")
    return 0


def scancel(words: list[str]) -> int:
    options, ids = parsed(words, valued=())
    for id_ in ids:
        end(id_, signal.Signals[f"SIG{options['--signal'][0]}"], 0.0)
    return 0


def attached(command: list[str], options: dict[str, list[str]], **more: Any) -> int:
    """Hand over to a supervisor, then be a client: copy the output, end with the command's exit code."""
    id_ = secrets.token_hex(32)
    record = {"id": id_, "command": command, "env": inner_environment(options), "state": "created", **more}
    record["name"] = options.get("--name", [""])[0]
    write(record)
    clean = {"PATH": os.environ["PATH"], "STANDIN_DOCKER": str(HOME)}
    subprocess.Popen(
        [sys.executable, __file__, "__supervise__", id_],
        env=clean,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    signal.signal(signal.SIGTERM, lambda *_: pass_on(id_))
    return copied(id_)


def copied(id_: str) -> int:
    output, errors, ended = HOME / f"{id_}.out", HOME / f"{id_}.err", HOME / f"{id_}.code"
    at = [0, 0]
    while True:
        over = ended.exists()
        for i, (file, stream) in enumerate(((output, sys.stdout), (errors, sys.stderr))):
            data = file.read_bytes()[at[i] :] if file.exists() else b""
            at[i] += len(data)
            stream.buffer.write(data)
            stream.flush()
        if over:
            return int(ended.read_text())
        time.sleep(0.02)


def supervise(id_: str) -> int:
    """The daemon's side of one container."""
    record = read(id_)
    with (HOME / f"{id_}.out").open("wb") as out, (HOME / f"{id_}.err").open("wb") as err:
        inner = subprocess.Popen(
            record["command"], env=record["env"], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            start_new_session=True,
        )  # fmt: skip
        write({**record, "state": "running", "pid": inner.pid})
        code = inner.wait()
    part = HOME / f"{id_}.part"
    part.write_text(str(code if code >= 0 else 128 - code))
    part.replace(HOME / f"{id_}.code")
    if record["rm"]:
        (HOME / f"{id_}.json").unlink(missing_ok=True)
    else:
        write({**record, "state": "exited"})
    return 0


def ps(words: list[str]) -> int:
    options, _ = parsed(words, valued=("--filter", "--format"))
    wanted = [f.removeprefix("label=").split("=", 1) for f in options.get("--filter", [])]
    for record in containers():
        if any(record["labels"].get(key) != value for key, value in wanted):
            continue
        if "--all" in options or record["state"] == "running":
            label = record["labels"].get("moeagent.tag", "")
            print(f"{record['id']} {label} {record['state']}")
    return 0


def stop(words: list[str]) -> int:
    options, ids = parsed(words, valued=("--time", "-t"))
    grace_s = float((options.get("--time") or options.get("-t") or ["10"])[0])
    for id_ in ids:
        end(id_, signal.SIGTERM, grace_s)
        end(id_, signal.SIGKILL, 5.0)
    return 0


def remove(words: list[str]) -> int:
    _, ids = parsed(words)
    for id_ in ids:
        end(id_, signal.SIGKILL, 5.0)
        (HOME / f"{id_}.json").unlink(missing_ok=True)
    return 0


def logs(words: list[str]) -> int:
    for stream, suffix in ((sys.stdout, "out"), (sys.stderr, "err")):
        stream.buffer.write((HOME / f"{words[0]}.{suffix}").read_bytes())
    return 0


def end(id_: str, number: int, wait_s: float) -> None:
    """Signal everything in the container, and wait until its first process has ended."""
    try:
        os.killpg(read(id_)["pid"], number)
    except (OSError, KeyError):
        return
    deadline = time.monotonic() + wait_s
    while not (HOME / f"{id_}.code").exists() and time.monotonic() < deadline:
        time.sleep(0.02)


def pass_on(id_: str) -> None:
    os.killpg(read(id_)["pid"], signal.SIGTERM)


def inner_environment(options: dict[str, list[str]]) -> dict[str, str]:
    env = {"PATH": os.environ["PATH"]}
    for given in [*options.get("--env", []), *options.get("-e", [])]:
        name, equals, value = given.partition("=")
        if equals or name in os.environ:
            env[name] = value if equals else os.environ[name]
    hidden = HIDDEN in os.environ
    return {name: value for name, value in env.items() if not (hidden and name.startswith("MOEAGENT_"))}


def parsed(words: list[str], valued: tuple[str, ...] = VALUED) -> tuple[dict[str, list[str]], list[str]]:
    """Options up to the first word that is none, and the rest."""
    options: dict[str, list[str]] = {}
    left = list(words)
    while left and left[0].startswith("-"):
        name, equals, value = left.pop(0).partition("=")
        options.setdefault(name, [])
        if equals or name in valued:
            options[name].append(value if equals else left.pop(0))
    return options, left


def containers(kind: str = "container") -> list[dict[str, Any]]:
    found = []
    for file in sorted(HOME.glob("*.json")):
        try:
            found.append(json.loads(file.read_text()))
        except (OSError, ValueError):
            continue
    return [record for record in found if record["kind"] == kind]


def read(id_: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((HOME / f"{id_}.json").read_text())
    return record


def write(record: dict[str, Any]) -> None:
    part = HOME / f"{record['id']}.{os.getpid()}"
    part.write_text(json.dumps(record))
    part.replace(HOME / f"{record['id']}.json")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
