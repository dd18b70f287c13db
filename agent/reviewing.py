"""A reviewer's word on a run: written beside the tape, and made known to the findings store."""

from datetime import UTC, datetime
from pathlib import Path

from moeagent.agent.findings_index import STORE
from moeagent.memory.findings.store import FindingsStore
from moeagent.memory.review import Judgement, Review, append_review, check_id
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.run_view import RunView


def write_review(
    folder: RunFolder, root: Path, about: str, text: str, judgement: Judgement | None = None
) -> Review:
    """Append a note, or a judgement that later runs respect.

    Raises InputError when the run has nothing of this id.
    """
    view = RunView.read(folder)
    check_id(view.run, view.ledger, about)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    review = Review(at=now, about=about, judgement=judgement, text=text)
    append_review(folder, review)
    if judgement:
        store = FindingsStore(root / STORE)
        try:
            store.judge(folder.id, [review])
        finally:
            store.close()
    return review
