"""Campaign settings: precedence, clear errors, and a settings file that cannot go stale."""

import re
import tomllib
from pathlib import Path

import pytest

from moeagent.agent.cli import parse
from moeagent.agent.hosting import decide_host, prepare
from moeagent.agent.settings import CampaignSettings, load_settings, parse_slo
from moeagent.agent.settings_file import commented_settings
from moeagent.memory.errors import InputError


def test_command_line_over_environment_over_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "moeagent.toml"
    path.write_text("[limits]\nhours = 1.0\nexperiments = 3\nlaunches = 9\n")
    monkeypatch.setenv("MOEAGENT_LIMITS__HOURS", "2.0")
    monkeypatch.setenv("MOEAGENT_LIMITS__EXPERIMENTS", "4")
    limits = load_settings(path, {"limits": {"experiments": 5}}).limits
    assert (limits.launches, limits.hours, limits.experiments) == (9, 2.0, 5)


def test_options_that_were_not_given_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "moeagent.toml"
    path.write_text('[host]\ntarget = "gpu1"\n[baseline.flags]\n"--tp-size" = 8\n')
    settings = load_settings(path, {"host": {"target": None}, "baseline": {"flags": {"--dp-size": 2}}})
    assert settings.host.target == "gpu1"
    assert settings.baseline.flags == {"--tp-size": 8, "--dp-size": 2}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[host\n", "line 1"),
        ("[workload]\ninput_length = 8\n", "did you mean 'input_len'"),
        ("[limits]\nhours = -1\n", "limits.hours"),
        ('[baseline.flags]\n"tp size" = 8\n', "leading dashes"),
    ],
)
def test_bad_settings_are_named(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "moeagent.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(told)):
        load_settings(path, {})


def test_commented_settings_are_valid_with_every_line_uncommented() -> None:
    text = commented_settings()
    tomllib.loads(text)
    uncommented = re.sub(r"(?m)^# (\S+ = )", r"\1", text)
    assert CampaignSettings(**tomllib.loads(uncommented)) == CampaignSettings()


@pytest.mark.parametrize(
    ("text", "metric", "percentile", "bound"),
    [
        ("ttft_p99=2s", "ttft", "p99", 2.0),
        ("tpot_p50=50ms", "tpot", "p50", 0.05),
        ("output_tok_s=500", "output_tok_s", None, 500.0),
        ("error_rate=1%", "error_rate", None, 0.01),
    ],
)
def test_slo(text: str, metric: str, percentile: str | None, bound: float) -> None:
    constraint = parse_slo(text)
    assert (constraint.metric, constraint.percentile, constraint.bound) == (metric, percentile, bound)


@pytest.mark.parametrize("text", ["ttft=2s", "ttft_p99", "speed_p99=1", "ttft_p42=1s", "ttft_p99=fast"])
def test_bad_slo(text: str) -> None:
    with pytest.raises(InputError, match="--slo"):
        parse_slo(text)


def test_words_of_the_command_line() -> None:
    assert parse.flags(["--tp-size 8", "--enable-x", "--f=0.5", "--name a b"]) == {
        "--tp-size": 8,
        "--enable-x": True,
        "--f": 0.5,
        "--name": "a b",
    }
    assert parse.variables(["A=1", "B=x=y"]) == {"A": "1", "B": "x=y"}
    assert parse.ladder("256,1,10") == (1, 10, 256)
    assert parse.limits(["experiments=3", "hours=0.5"]) == {"limits": {"experiments": 3, "hours": 0.5}}


@pytest.mark.parametrize(
    "call",
    [
        lambda: parse.flags(["tp-size 8"]),
        lambda: parse.variables(["NAME"]),
        lambda: parse.ladder("1,x"),
        lambda: parse.ladder("0"),
        lambda: parse.limits(["experimnts=3"]),
        lambda: parse.limits(["hours=long"]),
    ],
)
def test_bad_words_are_input_errors(call: object) -> None:
    with pytest.raises(InputError):
        call()  # type: ignore[operator]


def test_without_a_host_a_machine_with_an_engine_must_be_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert decide_host(CampaignSettings()).host.target == "sim"
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    with pytest.raises(InputError, match="--host local"):
        decide_host(CampaignSettings())


def test_the_simulated_machine_brings_its_own_baseline() -> None:
    settings = prepare(load_settings(None, {"host": {"target": "sim"}}))
    assert settings.baseline.flags["--tp-size"] == 8
