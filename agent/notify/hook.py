"""At the end of a run: tell who asked to be told, and never let that end the run differently."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from moeagent.agent.events import Events, Warned
from moeagent.agent.notify.deliver import NotTold, host_of, post, run_command
from moeagent.agent.notify.payload import payload
from moeagent.agent.notify.settings import NotifySettings
from moeagent.agent.secret_settings import OwnSecrets
from moeagent.agent.settings import CampaignSettings
from moeagent.memory.errors import MoeagentError, Paused
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.run_view import RunView


@contextmanager
def told_at_the_end(folder: RunFolder, root: Path, events: Events) -> Iterator[None]:
    """Notify when the block ends, however it ends; a pause that was asked for and a block that added
    nothing to the tape are no ends.
    """
    before = folder.tape.stat().st_size
    try:
        yield
    except Paused:
        raise
    except BaseException:
        _tell(folder, root, events, before)
        raise
    _tell(folder, root, events, before)


def _tell(folder: RunFolder, root: Path, events: Events, before: int) -> None:
    try:
        if folder.tape.stat().st_size == before:
            return
        view = RunView.read(folder)
        settings = CampaignSettings(**view.header["settings"])
        secrets = OwnSecrets(settings.llm.api_key_env)
        message = secrets.mask(payload(folder, view, root))
        for warning in notify(settings.notify, message):
            events.emit(Warned(secrets.mask(f"nobody was notified of the run's end by {warning}")))
    except (MoeagentError, OSError) as error:
        events.emit(Warned(f"nobody was notified of the run's end: {error}"))


def notify(
    settings: NotifySettings, message: str, environment: Mapping[str, str] = os.environ
) -> Iterator[str]:
    """Tell everybody that the settings name; yields a line for each that could not be told."""
    for name, deliver in _ways(settings, message, environment):
        try:
            deliver()
        except NotTold as error:
            yield f"{name}: {error}"


def _ways(
    settings: NotifySettings, message: str, environment: Mapping[str, str]
) -> Iterator[tuple[str, Callable[[], None]]]:
    if settings.command:
        yield (
            f"notify.command {settings.command[0]}",
            partial(run_command, settings.command, message, settings.deadline_s),
        )
    address = settings.webhook
    if settings.webhook_env:
        address = environment.get(settings.webhook_env)
        if not address:
            yield f"notify.webhook_env {settings.webhook_env}", _not_set
            return
    if address:
        yield f"notify.webhook {host_of(address)}", partial(post, address, message, settings.deadline_s)


def _not_set() -> None:
    raise NotTold("this environment variable is not set here")
