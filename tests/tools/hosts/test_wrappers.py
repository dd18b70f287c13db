"""Wrappers as data: what is recognised, completed and refused."""

from typing import Any

import pytest

from moeagent.memory.errors import InputError
from moeagent.tools.hosts.command import Command
from moeagent.tools.hosts.wrapped import parse_found
from moeagent.tools.hosts.wrappers import WrapperSpec, refuse_unwrapped, resolve, wrapper_catalogue

OWN = {"find": ["f"], "stop": ["s", "{id}"], "kill": ["k", "{id}"]}


def spec(*command: str, **more: Any) -> WrapperSpec:
    return WrapperSpec.model_validate({"command": command, **more})


def test_every_known_wrapper_says_how_to_tag_find_and_stop() -> None:
    for known in wrapper_catalogue().wrapper:
        assert known.find, known.name
        assert known.stop, known.name
        assert known.kill, known.name
        assert known.tag or known.env, known.name
        assert known.source.strip()
        assert all(known.refused.values())


def test_docker_run_is_completed_and_tagged() -> None:
    wrapper = resolve(spec("docker", "--context", "gpu1", "run", "--gpus=all", "sglang:1"))
    assert wrapper.kind == "docker"
    assert wrapper.prefix == (
        "docker", "--context", "gpu1", "run", "--rm", "--network=host", "--gpus=all", "sglang:1",
    )  # fmt: skip
    inner = (*wrapper.prefix, "python3", "-m", "sglang.launch_server", "--port", "1")
    tagged = wrapper.tagged(Command(inner, {"NCCL_ALGO": "Ring"}), "r/L1")
    words = [str(word) for word in tagged.argv]
    assert words[:6] == ["docker", "--context", "gpu1", "run", "--label", "moeagent.tag=r/L1"]
    assert "--env NCCL_ALGO" in " ".join(words)
    assert "--env MOEAGENT_TAG" in " ".join(words)
    assert "Ring" not in " ".join(words)
    assert words[-7:] == ["--gpus=all", "sglang:1", "python3", "-m", "sglang.launch_server", "--port", "1"]
    assert wrapper.filled(wrapper.declared.stop, grace_s="20", id="abc") == (
        "docker", "--context", "gpu1", "stop", "--time", "20", "abc",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (("/usr/bin/podman", "run", "image"), "podman"),
        (("docker", "exec", "box"), "docker-exec"),
        (("podman", "exec", "--user", "me", "box"), "podman-exec"),
        (("srun", "--gres=gpu:8"), "slurm"),
        (("sudo", "-n", "docker", "run", "image"), "docker"),
    ],
)
def test_the_kind_is_told_from_the_command(command: tuple[str, ...], kind: str) -> None:
    assert resolve(spec(*command)).kind == kind


def test_slurm_needs_no_variables_and_names_the_step() -> None:
    wrapper = resolve(spec("srun", "--gres=gpu:8"))
    tagged = wrapper.tagged(Command((*wrapper.prefix, "vllm", "serve"), {"A": "1"}), "r/L1")
    assert [str(w) for w in tagged.argv] == ["srun", "--job-name=r/L1", "--gres=gpu:8", "vllm", "serve"]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("docker", "run", "-d", "image"), "the client would end at once"),
        (("docker", "run", "-it", "image"), "no terminal"),
        (("docker", "run", "--restart=always", "image"), "has to stay dead|must stay dead"),
        (("docker", "run", "-p", "1:1", "image"), "127.0.0.1"),
        (("docker", "run", "--network", "bridge", "image"), "--network has to be host"),
        (("docker", "exec", "-it", "box"), "no terminal"),
        (("srun", "--export=NONE"), "environment"),
        (("kubectl", "exec", "pod", "--"), "lacks find, stop, kill, tag"),
        (("mine",), "does not say how its server is found and stopped"),
        ((), "no command"),
    ],
)
def test_what_could_not_be_controlled_is_refused(command: tuple[str, ...], told: str) -> None:
    with pytest.raises(InputError, match=told):
        resolve(spec(*command))


def test_a_wrapper_of_ones_own_is_taken_when_it_says_everything() -> None:
    wrapper = resolve(spec("mine", "--gpu", tag=["--tag={tag}"], **OWN))
    tagged = wrapper.tagged(Command((*wrapper.prefix, "--", "server"), {}), "r/L1")
    assert wrapper.kind == "mine"
    assert [str(w) for w in tagged.argv][-4:] == ["--gpu", "--tag=r/L1", "--", "server"]
    with pytest.raises(InputError, match=r"lacks tag \(or env\)"):
        resolve(spec("mine", **OWN))


def test_a_kind_that_is_not_the_commands_is_refused() -> None:
    with pytest.raises(InputError, match=r"is no podman: it begins with podman \.\.\. run"):
        resolve(spec("docker", "run", "image", kind="podman"))


@pytest.mark.parametrize(
    "command", [("docker", "exec", "box", "python3"), ("numactl", "srun", "python3"), ("tmux",)]
)
def test_a_launch_command_that_outlives_its_client_is_refused(command: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=r"\[engine\.wrapper\]"):
        refuse_unwrapped(command)


def test_an_ordinary_launch_command_is_taken() -> None:
    refuse_unwrapped(("numactl", "--interleave=all", "/home/docker/venv/bin/python", "-m", "sglang"))


def test_only_lines_of_exactly_our_tag_are_ours() -> None:
    text = "a r/L1 running\nb r/L10 running\nc r/L1 Exited\nd\ne \nf x/r/L1 running\n"
    assert [(each.id, each.state) for each in parse_found(text, "r/L1")] == [
        ("a", "running"),
        ("c", "exited"),
    ]
