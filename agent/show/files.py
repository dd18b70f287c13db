"""Reports as files: the two in a run's folder, and one wherever the user wants it."""

from pathlib import Path

from moeagent.agent.show.report import markdown
from moeagent.memory.errors import InputError
from moeagent.memory.review import read_reviews
from moeagent.memory.run_folder import RunFolder, write_private
from moeagent.memory.run_view import RunView


def write_reports(folder: RunFolder) -> None:
    """Write report.md and report.html anew from the run's tape."""
    from moeagent.agent.show.html.page import page
    from moeagent.agent.show.seen import ideas_left

    view, ideas = RunView.read(folder), ideas_left(folder)
    write_private(folder.path / "report.md", markdown(view, read_reviews(folder), ideas).encode())
    write_private(folder.path / "report.html", page(folder, view, ideas).encode())


def write_report(path: Path, text: str) -> None:
    """Write one report, whole or not at all. Raises InputError where the file cannot be written."""
    try:
        write_private(path, text.encode())
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}. Choose another file") from None
