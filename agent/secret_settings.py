"""Secrets: refused in the settings, which are kept with the run, and masked in what a server tells."""

import os
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, urlsplit

from moeagent.agent.notify.settings import NotifySettings
from moeagent.agent.settings import CampaignSettings
from moeagent.memory.errors import InputError
from moeagent.memory.records import FlagValue
from moeagent.tools.hosts.command import Secret, has_password, is_secret_name, mask

SHORTEST = 8
"""Shorter values are placeholders such as EMPTY; masking them would hide ordinary words."""


def refuse_secrets(settings: CampaignSettings) -> None:
    """Raise InputError for a secret that stands in the settings."""
    if settings.llm.base_url and has_password(settings.llm.base_url):
        raise InputError(
            "llm.base_url holds a password, and settings are kept with the run: give the URL without it, and "
            f"the key in the environment variable {settings.llm.api_key_env}"
        )
    if _holds_secret(settings.notify):
        raise InputError(
            "notify holds a password or a key, and settings are kept with the run: give the webhook's "
            "address in an environment variable, its name as webhook_env; let a command read its key itself"
        )
    for name, value in _named_values(settings):
        if isinstance(value, str) and value and (is_secret_name(name) or has_password(value)):
            raise InputError(
                f"{name} holds a secret, and settings are kept with the run: leave it out, and set it in the "
                "environment of the host, where the server finds it"
            )


class OwnSecrets:
    """The secrets in moeagent's own environment, which a local server inherits and may print."""

    def __init__(self, key_variable: str, environment: Mapping[str, str] = os.environ) -> None:
        named = (value for name, value in environment.items() if name == key_variable or is_secret_name(name))
        self._values = tuple(Secret(value) for value in named if len(value) >= SHORTEST)

    def mask(self, text: str) -> str:
        """Any text without these values and without passwords in URLs."""
        return mask(text, self._values)


def _holds_secret(notify: NotifySettings) -> bool:
    """Whether an address holds a password or a key, or the command is given one."""
    query = urlsplit(notify.webhook or "").query
    names = (*notify.command, *(name for name, _ in parse_qsl(query, keep_blank_values=True)))
    return any(map(has_password, (notify.webhook or "", *notify.command))) or any(map(is_secret_name, names))


def _named_values(settings: CampaignSettings) -> Iterator[tuple[str, FlagValue]]:
    """Every flag and variable that the settings give."""
    ideas, installs = settings.idea, settings.engine.install
    for flags in (settings.baseline.flags, *(idea.flags for idea in ideas)):
        yield from flags.items()
    own = (settings.engine.env, settings.baseline.env)
    for env in (*own, *(idea.env for idea in ideas), *(one.env for one in installs)):
        yield from env.items()
