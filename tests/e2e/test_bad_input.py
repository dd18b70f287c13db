"""Bad input: one clear error with what to do, a non-zero exit, nothing left running."""

import socket
from pathlib import Path

import pytest
from e2e.command import moeagent, tagged_processes
from parts.llamacpp import free_port, tiny_model
from parts.sshd import Sshd

LLAMA = ("--engine", "llamacpp", "--concurrency", "1", "--input-len", "8", "--output-len", "4")


def error_of(folder: Path, *arguments: str, code: int, **extra: str) -> str:
    """The single line on standard error."""
    done = moeagent(folder, *arguments, code=code, **extra)
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("moeagent: ")
    return lines[0]


def test_malformed_toml(tmp_path: Path) -> None:
    (tmp_path / "moeagent.toml").write_text("[host\ntarget = 1")
    assert "line 1" in error_of(tmp_path, "run", code=2)


def test_unknown_setting_suggests_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "moeagent.toml").write_text("[workload]\ninput_length = 8")
    assert "did you mean 'input_len'" in error_of(tmp_path, "run", "--host", "sim", code=2)


def test_unknown_run(tmp_path: Path) -> None:
    assert "`moeagent runs`" in error_of(tmp_path, "log", "nothing", code=2)


def test_damaged_tape(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "broken"
    run.mkdir(parents=True)
    (run / "tape.jsonl").write_text("0123456789abcdef {}\n")
    assert "line 1 " in error_of(tmp_path, "replay", "broken", code=6)


def test_unknown_engine_and_goal(tmp_path: Path) -> None:
    assert "sglang" in error_of(
        tmp_path, "run", "--host", "local", "--engine", "sglan", "--model", "m", code=2
    )
    assert "goal.name" in error_of(tmp_path, "run", "--host", "sim", "--goal", "fastest", code=2)


def test_no_model(tmp_path: Path) -> None:
    assert "--model" in error_of(tmp_path, "run", "--host", "local", *LLAMA, code=2)


@pytest.mark.part("llamacpp")
def test_model_path_missing(tmp_path: Path) -> None:
    message = error_of(tmp_path, "run", "--host", "local", "--model", "/nowhere/m.gguf", *LLAMA, code=2)
    assert "/nowhere/m.gguf" in message


@pytest.mark.part("llamacpp")
def test_unknown_flag_in_the_baseline(tmp_path: Path) -> None:
    model = str(tiny_model(tmp_path))
    message = error_of(
        tmp_path, "run", "--host", "local", "--model", model, *LLAMA, "--flag", "--paralel 4", code=2
    )
    assert "--parallel" in message


def test_engine_not_installed(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    message = error_of(
        tmp_path, "run", "--host", "local", "--engine", "vllm", "--model", str(tmp_path), code=3
    )
    assert "GPU" in message or "vllm" in message


@pytest.mark.part("llamacpp")
def test_a_baseline_that_dies_is_diagnosed_and_nothing_is_left(tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    model.write_bytes(model.read_bytes()[: model.stat().st_size // 2])
    done = moeagent(
        tmp_path, "run", "--run-id", "dead", "--host", "local", "--model", str(model), *LLAMA, code=4
    )
    assert "model.missing_file" in done.stderr
    assert not tagged_processes("dead/")


def test_host_unreachable(tmp_path: Path) -> None:
    message = error_of(tmp_path, "run", "--host", f"127.0.0.1:{free_port()}", "--model", "/m", *LLAMA, code=3)
    assert "127.0.0.1" in message


@pytest.mark.part("sshd")
def test_unknown_host_key_and_refused_key(tmp_path: Path) -> None:
    server = Sshd(tmp_path / "sshd").start()
    try:
        message = error_of(tmp_path, "run", "--host", server.spec, "--model", "/m", *LLAMA, code=3)
        assert "--accept-new" in message or "known_hosts" in message
        (server.folder / "authorized_keys").write_text("")
        config = tmp_path / "ssh_config"
        config.write_text(
            f"Host box\n HostName 127.0.0.1\n Port {server.port}\n IdentityFile {server.user_key}\n"
            f" UserKnownHostsFile {server.home}/.ssh/known_hosts\n"
        )
        refused = error_of(
            tmp_path, "run", "--host", "box", "--ssh-config", str(config), "--model", "/m", *LLAMA, code=3
        )
        assert "key" in refused
    finally:
        server.stop()


def test_gpu_memory_held_by_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "moeagent.toml").write_text('[host]\ntarget = "sim"\n[sim]\nheld_gib = 60.0\n')
    message = error_of(tmp_path, "run", code=3)
    assert "MiB" in message


def test_port_in_use_is_named_by_doctor_or_avoided(tmp_path: Path) -> None:
    """A taken port is not an error: the next free one is used."""
    from moeagent.tools.hosts.local import LocalHost
    from moeagent.tools.hosts.ports import check_port
    from moeagent.tools.hosts.ports import free_port as first_free

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert first_free(LocalHost(), port) != port
        with pytest.raises(Exception, match=str(port)):
            check_port(LocalHost(), port)


def test_too_old_a_tape_names_the_version(tmp_path: Path) -> None:
    from moeagent.memory.tape.tape import Tape

    run = tmp_path / "runs" / "old"
    run.mkdir(parents=True)
    header = {"run": "old", "loop": 0, "moeagent": "0.0.1", "data": {}, "settings": {}, "created_at": "2020"}
    Tape.record(run / "tape.jsonl", header).close()
    assert "moeagent==0.0.1" in error_of(tmp_path, "replay", "old", code=8)


def test_a_run_id_that_is_no_folder_name(tmp_path: Path) -> None:
    assert "run id '../away'" in error_of(tmp_path, "run", "--host", "sim", "--run-id", "../away", code=2)
    assert not (tmp_path / "away").exists()
