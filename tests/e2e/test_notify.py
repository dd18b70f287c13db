"""A run that ends, or waits for an answer, tells who asked to be told."""

import json
import sys
from pathlib import Path

import pytest
from e2e.command import moeagent
from e2e.small_run import SMALL, settings
from parts.hook import hook

KEY = "sk-planted-0123456789"


def notifying(folder: Path, webhook: str) -> None:
    """Settings of a small run whose end is written to `told` and posted."""
    script = "import sys; open('told', 'a').write(sys.stdin.read() + '\\n')"
    told = f'\n[notify]\ncommand = [{json.dumps(sys.executable)}, "-c", {json.dumps(script)}]\n'
    settings(folder, f'{SMALL}{told}webhook = "{webhook}"\ndeadline_s = 4.0\n')


def told(folder: Path) -> list[dict[str, object]]:
    path = folder / "told"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, object]], str]:
    """The folder of a finished run, what was posted, and what it printed; the first POST gets a 503."""
    folder = tmp_path_factory.mktemp("ended")
    with hook(503, 200) as server:
        notifying(folder, server.address)
        done = moeagent(folder, "run", "--run-id", "noted", "--goal", "max-throughput", OPENAI_API_KEY=KEY)
    return folder, server.bodies, done.stdout + done.stderr


def test_the_end_is_told_once_to_both(ended: tuple[Path, list[dict[str, object]], str]) -> None:
    folder, posted, printed = ended
    assert told(folder) == posted[1:]
    assert posted[0] == posted[1]
    [end] = told(folder)
    assert end["run"] == "noted"
    assert end["state"] == "finished"
    assert Path(str(end["report"])).is_file()
    assert KEY not in json.dumps(end)
    assert "warning" not in printed


def test_a_replay_tells_nobody(
    ended: tuple[Path, list[dict[str, object]], str],
) -> None:
    folder, posted, _ = ended
    before = len(told(folder))
    moeagent(folder, "replay", "noted")
    assert len(told(folder)) == before
    assert len(posted) == 2


def test_a_failure_is_one_line_and_the_run_ends_as_it_would(tmp_path: Path) -> None:
    with hook(404) as server:
        notifying(tmp_path, server.address)
        done = moeagent(tmp_path, "run", "--run-id", "noted", "--goal", "max-throughput")
    warnings = [line for line in (done.stdout + done.stderr).splitlines() if "nobody was notified" in line]
    assert len(warnings) == 1
    assert "127.0.0.1: it answered 404" in warnings[0]
    assert "secret-path" not in done.stdout + done.stderr


def test_a_question_is_told_with_the_command_that_answers_it(tmp_path: Path) -> None:
    with hook() as server:
        notifying(tmp_path, server.address)
        moeagent(
            tmp_path, "run", "--run-id", "asks", "--goal", "max-throughput", "--approve", "always", code=9
        )
    [question] = server.bodies
    assert question["state"] == "awaiting approval"
    assert "--approve-next" in question["commands"]["resume"]
