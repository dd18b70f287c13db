"""Secrets never stand in settings, which are kept with the run; what a server prints of them is masked."""

import pytest

from moeagent.agent.hosting import prepare
from moeagent.agent.secret_settings import OwnSecrets
from moeagent.agent.settings import BaselineSettings, CampaignSettings, HostSettings, LlmSettings, OwnIdea
from moeagent.memory.errors import InputError

TOKEN = "hf_planted0123456789"


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ({"baseline": BaselineSettings(env={"HF_TOKEN": TOKEN})}, r"HF_TOKEN.*environment of the host"),
        ({"baseline": BaselineSettings(flags={"--api-key": "sk-1234567890"})}, r"--api-key.*leave it out"),
        ({"baseline": BaselineSettings(env={"HTTPS_PROXY": "http://me:pw@proxy:1"})}, r"HTTPS_PROXY"),
        ({"idea": (OwnIdea(env={"HF_TOKEN": TOKEN}),)}, r"HF_TOKEN"),
        ({"llm": LlmSettings(base_url="https://me:pw@llm.example/v1")}, r"OPENAI_API_KEY"),
    ],
)
def test_a_secret_in_the_settings_is_refused_with_how_to_give_it(
    parts: dict[str, object], named: str
) -> None:
    with pytest.raises(InputError, match=named) as refused:
        prepare(CampaignSettings(host=HostSettings(target="sim"), **parts))
    assert not any(secret in str(refused.value) for secret in (TOKEN, "sk-1234567890", "me:pw"))


def test_own_secrets_are_masked_in_any_text() -> None:
    own = OwnSecrets("LLM", {"HF_TOKEN": TOKEN, "LLM": "a-key-of-the-model", "HOME": "/home/somebody"})
    assert (
        own.mask(f"token={TOKEN} key=a-key-of-the-model in /home/somebody")
        == "token=*** key=*** in /home/somebody"
    )


def test_passwords_in_urls_are_masked_and_placeholders_are_not() -> None:
    own = OwnSecrets("OPENAI_API_KEY", {"OPENAI_API_KEY": "EMPTY"})
    assert own.mask("EMPTY queue at http://me:pw@proxy:1") == "EMPTY queue at http://me:***@proxy:1"
