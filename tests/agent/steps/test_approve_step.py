"""What passes the approval step and what does not, in campaigns in virtual time."""

import pytest
from parts.virtual import Campaign, limits

from moeagent.agent.approval.policy import ApprovalPolicy
from moeagent.agent.settings import OwnIdea
from moeagent.memory.records import VerdictKind

DELETES = OwnIdea(statement="free the disk", flags={"--delete-ckpt-after-loading": True})


def policy(*rules: dict[str, object], **other: object) -> ApprovalPolicy:
    return ApprovalPolicy.model_validate({"rule": rules, **other})


def test_never_asks_nobody_and_leaves_no_trace() -> None:
    campaign = Campaign()
    loop = campaign.drive()
    assert loop.ledger.approvals == []
    assert campaign.effects.asked == []


def test_always_asks_once_for_each_new_configuration_and_says_what_it_is() -> None:
    campaign = Campaign(["yes"] * 20, approve="always")
    loop = campaign.drive()
    launched = {x.config.id for x in loop.ledger.launches if x.hypothesis} - {loop.baseline.id}
    assert [a.config for a in loop.ledger.approvals] == list(
        dict.fromkeys(a.config for a in loop.ledger.approvals)
    )
    assert launched <= {a.config for a in loop.ledger.approvals if a.answer == "approved"}
    first = campaign.effects.asked[0]
    assert first.hypothesis == "H1"
    assert "sglang.launch_server" in first.command
    assert first.why == "--approve always"
    assert first.expected_s > 0
    assert {a.by for a in loop.ledger.approvals} == {"tester"}


def test_declined_and_skipped_ideas_cost_no_experiment_and_are_not_proposed_again() -> None:
    loop = Campaign(["no", "skip", *["yes"] * 20], approve="always").drive()
    first, second = loop.ledger.hypotheses[:2]
    for idea, word in ((first, "declined by the engineer"), (second, "left for later")):
        verdict = loop.ledger.verdict(idea.id)
        assert verdict is not None
        assert (verdict.kind, word in verdict.reason) == (VerdictKind.INCONCLUSIVE, True)
        assert loop.ledger.launches_for(idea.id) == []
    assert len([h for h in loop.ledger.hypotheses if loop.ledger.launches_for(h.id)]) == 3
    changes = [h.change for h in loop.ledger.hypotheses]
    assert len(changes) == len({str(change) for change in changes})


def test_a_policy_denies_without_asking_and_the_reason_is_kept() -> None:
    rule = {"action": "deny", "source": ["playbook"], "reason": "no playbook tonight"}
    campaign = Campaign(policy=policy(rule))
    loop = campaign.drive()
    assert campaign.effects.asked == []
    assert {x.hypothesis for x in loop.ledger.launches} == {None}
    assert "8 ideas in a row were refused" in loop.ledger.conclusion.reason  # type: ignore[union-attr]
    assert "no playbook tonight" in loop.ledger.conclusion.reason  # type: ignore[union-attr]


def test_risky_asks_for_what_is_risky_alone() -> None:
    risky = OwnIdea(flags={"--mem-fraction-static": 0.97, "--chunked-prefill-size": 65536})
    harmless = OwnIdea(flags={"--stream-interval": 4})
    campaign = Campaign(["yes"] * 30, approve="risky", idea=(risky, harmless), limits=limits(experiments=2))
    loop = campaign.drive()
    answers = {a.hypothesis: a.answer for a in loop.ledger.approvals if not a.attempt}
    assert answers == {"H1": "approved", "H2": "allowed"}
    assert [question.hypothesis for question in campaign.effects.asked if not question.attempt] == ["H1"]


def test_nobody_there_ends_the_run_as_awaiting_before_anything_is_spent() -> None:
    campaign = Campaign(["yes"], approve="always", limits=limits(experiments=2))
    loop = campaign.drive()
    assert loop.ledger.conclusion is not None
    assert loop.ledger.conclusion.status == "awaiting approval"
    last = loop.ledger.approvals[-1]
    assert last.answer == "awaiting"
    assert last.config not in {launch.config.id for launch in loop.ledger.launches}


@pytest.mark.parametrize("mode", ["never", "always"])
def test_the_deny_list_wins_over_any_policy(mode: str) -> None:
    allow = policy({"action": "allow", "command": ["*"]}, default="allow")
    loop = Campaign(["yes"] * 20, approve=mode, policy=allow, idea=(DELETES,)).drive()
    (rejection,) = [r for r in loop.ledger.rejections if r.source == "user"]
    assert "deletes the model's folder" in rejection.reason
    assert not any("--delete-ckpt-after-loading" in x.config.flags for x in loop.ledger.launches)
