"""Each limit ends a campaign in virtual time before it is passed, and says so; raised, the run goes on."""

from typing import Any

import pytest
from parts.virtual import Campaign, limits

from moeagent.agent.drive import amend_settings
from moeagent.agent.hosting import prepare
from moeagent.agent.limits import LABELS, consecutive_failures, raise_hint
from moeagent.agent.loop import Loop, SurveyFacts
from moeagent.agent.settings import CampaignSettings, HostSettings, LlmSettings, OwnIdea
from moeagent.agent.spending import check_limits
from moeagent.memory.errors import InputError
from moeagent.memory.ledger import Conclusion
from moeagent.memory.tape.lines import Json
from moeagent.tools.llm.records import Completion

HOST = HostSettings(price_per_hour=16.0)


def ended(loop: Loop) -> Conclusion:
    assert loop.ledger.conclusion is not None
    assert loop.ledger.conclusion.status == "finished"
    return loop.ledger.conclusion


@pytest.fixture(scope="module")
def launch_hours() -> float:
    """What one launch of the baseline takes in this world."""
    loop = Campaign(limits=limits(launches=1)).drive()
    return loop.world.active_s / 3600


@pytest.mark.parametrize(("name", "per_hour"), [("hours", 1.0), ("gpu_hours", None), ("money", 16.0)])
def test_what_time_uses_up_is_never_passed(name: str, per_hour: float | None, launch_hours: float) -> None:
    gpus = len(Campaign().bench.facts().host.gpus)
    rate = per_hour or gpus
    bound = 2.5 * launch_hours * rate
    loop = Campaign(host=HOST, limits=limits(**{name: bound})).drive()
    reason = ended(loop).reason
    assert f"{LABELS[name]} would be passed" in reason or f"{LABELS[name]} is reached" in reason
    assert raise_hint(reason) == f"--limit {name}=N"
    assert 1 <= len(loop.ledger.launches) <= 3
    assert loop.world.active_s / 3600 * rate <= bound * 1.2


def test_a_first_launch_that_is_predicted_to_pass_the_limit_is_not_started() -> None:
    loop = Campaign(limits=limits(gpu_hours=0.001)).drive()
    assert loop.ledger.launches == []
    assert "0.001 GPU-hours would be passed" in ended(loop).reason


def test_gpu_hours_on_a_machine_without_gpus_are_refused_at_once() -> None:
    campaign = Campaign(limits=limits(gpu_hours=1.0))
    facts = campaign.bench.facts()
    bare = facts.host.model_copy(update={"gpus": ()})
    campaign.loop.facts = SurveyFacts(host=bare, engine=facts.engine, model=facts.model)
    with pytest.raises(InputError, match="has no GPU"):
        check_limits(campaign.loop)


def test_launches_and_experiments_end_the_run() -> None:
    assert "2 launches" in ended(Campaign(limits=limits(launches=2)).drive()).reason
    loop = Campaign(limits=limits(experiments=1)).drive()
    assert ended(loop).reason == "the limit of 1 experiments is reached"
    assert len(loop.ledger.hypotheses) == 1


def test_failures_in_a_row_end_the_run() -> None:
    deadly = OwnIdea(flags={"--mem-fraction-static": 0.97, "--chunked-prefill-size": 65536})
    loop = Campaign(idea=(deadly,), limits=limits(consecutive_failures=1)).drive()
    assert ended(loop).reason == "1 launches in a row failed"
    assert raise_hint(ended(loop).reason) == "--limit consecutive_failures=N"
    assert consecutive_failures(loop.ledger) == 1


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"limits": {"money": 5}}, "host.price_per_hour"),
        ({"limits": {"llm_money": 5}}, "llm.price_per_million_input"),
        ({"policy": {"rule": [{"action": "ask", "cost_over": 5}]}}, "cost_over"),
    ],
)
def test_a_bound_on_money_without_a_price_is_refused(wrong: Json, told: str) -> None:
    with pytest.raises(InputError, match=told):
        prepare(CampaignSettings(**{"model": "/m", "host": {"target": "local"}, **wrong}))


class Talking(Campaign):
    """A campaign whose language model always answers the same useless thing, and counts."""

    def __init__(self, **settings: Any) -> None:
        self.calls = 0
        llm = LlmSettings(base_url="http://127.0.0.1:9/v1", price_per_million_output=1e6)
        super().__init__(llm=llm, **settings)
        self.effects.complete = self._complete  # type: ignore[method-assign]

    def _complete(self, request: Json) -> Json:
        self.calls += 1
        content = '{"ready": true}'
        answer = Completion(content=content, input_tokens=10, output_tokens=1, elapsed_s=0.1)
        return answer.model_dump(mode="json")


@pytest.mark.parametrize(
    ("limit", "calls", "told"),
    [
        ({"llm_calls": 3}, 3, "3 calls"),
        ({"llm_tokens": 25}, 3, "25 tokens"),
        ({"llm_money": 2.0}, 2, "2 money"),
    ],
)
def test_the_language_models_limits_hand_over_to_the_playbook(limit: Json, calls: int, told: str) -> None:
    campaign = Talking(limits=limits(**limit))
    loop = campaign.drive()
    assert campaign.calls == calls
    assert any(f"the limit of {told} for the language model is reached" in n.text for n in loop.ledger.notes)
    assert {h.source for h in loop.ledger.hypotheses} == {"playbook"}


def test_a_raised_limit_lets_the_language_model_go_on() -> None:
    campaign = Talking(limits=limits(llm_calls=1, experiments=1))
    loop = campaign.drive()
    assert loop.chat is not None
    assert loop.chat.closed
    amend_settings(loop, {"limits": {"llm_calls": 50}})
    assert not loop.chat.closed
    assert loop.chat.limits.calls == 50
