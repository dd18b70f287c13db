"""Rules, modes and files: what is allowed, asked and denied."""

from pathlib import Path
from typing import Any

import pytest

from moeagent.agent.approval.policy import ApprovalPolicy, Mode, Subject, matches, rule_on, silent
from moeagent.agent.approval.policy_file import read_policy
from moeagent.agent.settings import CampaignSettings
from moeagent.memory.errors import InputError


def policy(*rules: dict[str, Any], **other: Any) -> ApprovalPolicy:
    return ApprovalPolicy.model_validate({"rule": rules, **other})


def subject(**other: Any) -> Subject:
    fields: dict[str, Any] = {
        "command": "exec python3 -m sglang.launch_server --kv-cache-dtype fp8_e5m2 --tp-size 8",
        "flags": {"--kv-cache-dtype": "fp8_e5m2", "--enable-x": "", "--old": "(removed)"},
        "env": {"NCCL_ALGO": "Ring"},
        "source": "model",
        "risk": 0.3,
        "gpu_hours": 2.0,
        "cost": 10.0,
    }
    return Subject(**{**fields, **other})


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"command": ["*--kv-cache-dtype fp8*"]}, True),
        ({"command": ["*--kv-cache-dtype fp4*", "*--tp-size 8"]}, True),
        ({"command": ["--tp-size 8"]}, False),
        ({"flags": {"--kv-*": "fp8*"}}, True),
        ({"flags": {"--kv-*": "fp4*"}}, False),
        ({"flags": {"--enable-*": "*"}}, True),
        ({"flags": {"--old": "(removed)"}}, True),
        ({"flags": {"--kv-*": "*", "--nothing": "*"}}, False),
        ({"env": {"NCCL_*": "Ring"}}, True),
        ({"env": {"NCCL_*": "Tree"}}, False),
        ({"source": ["model", "search"]}, True),
        ({"source": ["playbook"]}, False),
        ({"risk_over": 0.29}, True),
        ({"risk_over": 0.3}, False),
        ({"gpu_hours_over": 1.5}, True),
        ({"cost_over": 10.0}, False),
        ({"cost_over": 9.0, "source": ["playbook"]}, False),
    ],
)
def test_a_rule_matches_when_all_that_it_states_holds(condition: dict[str, Any], holds: bool) -> None:
    (rule,) = policy({"action": "ask", **condition}).rule
    assert matches(rule, subject()) is holds


def test_a_cost_that_nobody_knows_counts_against_the_launch() -> None:
    deny, allow = policy({"action": "deny", "cost_over": 5}, {"action": "allow", "cost_over": 5}).rule
    assert matches(deny, subject(cost=None))
    assert not matches(allow, subject(cost=None))


def test_the_strictest_rule_wins_whatever_the_order() -> None:
    rules = [
        {"action": "allow", "flags": {"--kv-cache-dtype": "*"}},
        {"action": "deny", "flags": {"--enable-x": "*"}, "reason": "it hung here in May"},
        {"action": "ask", "risk_over": 0.1},
    ]
    for order in (rules, rules[::-1], [rules[1], rules[0], rules[2]]):
        said = rule_on(policy(*order), "always", subject())
        assert (said.action, said.reason) == ("deny", "it hung here in May")
    assert rule_on(policy(rules[0]), "always", subject()).action == "allow"


@pytest.mark.parametrize(
    ("mode", "risk", "action"),
    [("never", 0.9, "allow"), ("risky", 0.2, "allow"), ("risky", 0.25, "ask"), ("always", 0.0, "ask")],
)
def test_the_mode_decides_where_no_rule_matches(mode: Mode, risk: float, action: str) -> None:
    assert rule_on(policy(), mode, subject(risk=risk)).action == action


def test_a_default_stands_over_the_mode_and_makes_a_list_of_what_is_allowed() -> None:
    only = policy({"action": "allow", "flags": {"--chunked-*": "*"}}, default="deny")
    assert rule_on(only, "always", subject()).action == "deny"
    assert rule_on(only, "never", subject(flags={"--chunked-prefill-size": "4096"})).action == "allow"


def test_with_never_nobody_is_asked_and_what_would_be_asked_is_left_out() -> None:
    said = rule_on(policy({"action": "ask", "risk_over": 0.1}), "never", subject())
    assert said.action == "deny"
    assert "--approve never" in said.reason


def test_without_rules_never_is_silent() -> None:
    assert silent(policy(), "never")
    assert not silent(policy(), "risky")
    assert not silent(policy({"action": "deny", "risk_over": 0.5}), "never")


def test_a_policy_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('risky_from = 0.1\n[[rule]]\naction = "deny"\nflags = {"--kv-cache-dtype" = "fp4*"}\n')
    found = read_policy(file)
    assert (found.risky_from, found.rule[0].flags) == (0.1, {"--kv-cache-dtype": "fp4*"})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[[rule]]\naction = "forbid"\nrisk_over = 0.1\n', "rule.1.action"),
        ('[[rule]]\naction = "deny"\n', "no condition"),
        ('[[rule]]\naction = "deny"\nflag = {"--x" = "*"}\n', "rule.1.flag"),
        ("default = 3\n", "default"),
        ("[[rule]\n", "not valid TOML"),
    ],
)
def test_a_bad_policy_file_is_refused_by_name(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        read_policy(file)
    assert str(file) in str(refused.value)
    assert told in str(refused.value)


@pytest.mark.parametrize(("given", "mode"), [(True, "always"), (False, "never"), ("risky", "risky")])
def test_settings_of_the_first_version_are_read(given: object, mode: str) -> None:
    assert CampaignSettings.model_validate({"approve": given}).approve == mode


def test_the_example_is_a_policy() -> None:
    found = read_policy(Path(__file__).parents[3] / "examples" / "policy.toml")
    asked = Subject(
        command="exec x --kv-cache-dtype fp4_e2m1", source="playbook", flags={"--kv-cache-dtype": "fp4_e2m1"}
    )
    assert rule_on(found, "never", asked).action == "deny"
    assert rule_on(found, "never", Subject(command="exec x", source="playbook")).action == "allow"
