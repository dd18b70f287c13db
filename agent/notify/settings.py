"""The [notify] section of the settings."""

from typing import Self

from pydantic import PositiveFloat, model_validator

from moeagent.memory.records import Record


class NotifySettings(Record):
    """Who is told when a run ends or waits for an answer. A replay tells nobody."""

    command: tuple[str, ...] = ()
    """Program and arguments, run here without a shell; it gets one JSON object on standard input."""
    webhook: str | None = None
    """Address to which the same JSON is posted, such as https://chat.example/hooks/moeagent."""
    webhook_env: str | None = None
    """Name of the environment variable that holds the address, where the address is itself a secret."""
    deadline_s: PositiveFloat = 20.0
    """Longest time for each of them, retries of the webhook included; a failure is one line of warning."""

    @model_validator(mode="after")
    def _address_is_of_the_web(self) -> Self:
        if self.webhook and not self.webhook.startswith(("https://", "http://")):
            raise ValueError("webhook: write an address that begins with https:// or http://")
        return self
