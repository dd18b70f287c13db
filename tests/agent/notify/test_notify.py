"""Telling somebody: real commands, a real HTTP server."""

import json
import sys
from pathlib import Path

import pytest
from parts.hook import hook
from parts.made_run import write_run

from moeagent.agent.hosting import prepare
from moeagent.agent.notify.hook import notify
from moeagent.agent.notify.payload import payload
from moeagent.agent.notify.settings import NotifySettings
from moeagent.agent.settings import CampaignSettings, HostSettings
from moeagent.memory.errors import InputError
from moeagent.memory.run_view import RunView

MESSAGE = '{"run":"made"}'


def keeping(path: Path) -> tuple[str, ...]:
    """A program that writes its standard input to a file."""
    return (sys.executable, "-c", "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())", str(path))


def test_command_and_webhook_get_the_same_object(tmp_path: Path) -> None:
    with hook() as server:
        settings = NotifySettings(command=keeping(tmp_path / "told"), webhook=server.address)
        assert list(notify(settings, MESSAGE)) == []
    assert (tmp_path / "told").read_text() == MESSAGE
    assert server.bodies == [json.loads(MESSAGE)]
    assert server.headers[0]["Content-Type"] == "application/json"


def test_a_passing_error_is_tried_again() -> None:
    with hook(503, 429, 200) as server:
        assert list(notify(NotifySettings(webhook=server.address, deadline_s=10), MESSAGE)) == []
    assert len(server.bodies) == 3


@pytest.mark.parametrize("status", [302, 400, 404])
def test_a_lasting_error_is_told_at_once_without_the_path(status: int) -> None:
    with hook(status) as server:
        told = list(notify(NotifySettings(webhook=server.address), MESSAGE))
    assert told == [f"notify.webhook 127.0.0.1: it answered {status}"]
    assert len(server.bodies) == 1


def test_a_server_that_is_not_there_is_told_after_the_deadline() -> None:
    with hook() as server:
        gone = server.address
    told = list(notify(NotifySettings(webhook=gone, deadline_s=1), MESSAGE))
    assert len(told) == 1
    assert "ConnectError" in told[0]
    assert "secret-path" not in told[0]


def test_an_address_that_is_a_secret_comes_from_the_environment() -> None:
    settings = NotifySettings(webhook_env="TEAM_HOOK")
    with hook() as server:
        assert list(notify(settings, MESSAGE, {"TEAM_HOOK": server.address})) == []
    assert server.bodies
    assert list(notify(settings, MESSAGE, {})) == [
        "notify.webhook_env TEAM_HOOK: this environment variable is not set here"
    ]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("/no/such/program",), "cannot start"),
        ((sys.executable, "-c", "import sys; sys.exit('it is full')"), "exit code 1: it is full"),
        ((sys.executable, "-c", "import time; time.sleep(60)"), "was not done after 0.5 s"),
        (("sh", "-c", "sleep 60 & sleep 60"), "was not done after 0.5 s"),
    ],
)
def test_a_command_that_fails_is_told(command: tuple[str, ...], told: str) -> None:
    found = list(notify(NotifySettings(command=command, deadline_s=0.5), MESSAGE))
    assert len(found) == 1
    assert told in found[0]


def test_a_command_that_does_not_read_its_input_is_no_failure() -> None:
    assert list(notify(NotifySettings(command=("true",)), MESSAGE * 100_000)) == []


def test_what_is_told(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    told = json.loads(payload(folder, RunView.read(folder), tmp_path))
    assert told["run"] == "made"
    assert told["state"] == "finished"
    assert told["simulated"] is True
    assert told["best"]["hypothesis"] == "H1"
    assert told["gain"]["low"] < told["gain"]["effect"] < told["gain"]["high"]
    assert told["report"] == str(tmp_path / "made" / "report.html")
    assert told["commands"]["resume"].startswith("moeagent resume made")
    assert told["text"].startswith("moeagent run made (simulated) finished: the limit")


def test_a_run_whose_end_is_not_on_the_tape_crashed(tmp_path: Path) -> None:
    folder = write_run(tmp_path, hypotheses=0, ended=False)
    told = json.loads(payload(folder, RunView.read(folder), tmp_path))
    assert (told["state"], told["gain"]) == ("crashed", None)


@pytest.mark.parametrize(
    "settings",
    [
        NotifySettings(webhook="https://me:pw@chat.example/"),
        NotifySettings(webhook="https://chat.example/?api_key=k123456789"),
        NotifySettings(command=("tell", "--api-key", "k123456789")),
        NotifySettings(command=("curl", "https://me:pw@chat.example/")),
    ],
)
def test_a_secret_in_the_settings_is_refused(settings: NotifySettings) -> None:
    with pytest.raises(InputError, match="notify holds a password or a key") as refused:
        prepare(CampaignSettings(host=HostSettings(target="sim"), notify=settings))
    assert "k123456789" not in str(refused.value)


def test_a_webhook_is_an_address_of_the_web() -> None:
    with pytest.raises(ValueError, match="https://"):
        NotifySettings(webhook="file:///etc/passwd")
