"""What the documentation site gets when it is built: the reports of the committed runs, and mermaid."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from moeagent.agent.show.html.page import page as report_page
from moeagent.agent.show.markup import cell, table
from moeagent.agent.show.text import effect_text
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.run_view import RunView

ROOT = Path(__file__).parents[2]
MERMAID = Path(__file__).parent / "vendor" / "mermaid.min.js"
OWN = ("site.css", "site.js")
GALLERY = "gallery.md"
LIST = "<!-- the committed runs -->"
HEAD = ("report", "machine", "figures", "engine", "model", "goal", "hypotheses", "best")


def committed_runs() -> list[RunFolder]:
    """The runs that are in the repository: `runs/example-*`, as .gitignore has it."""
    return [RunFolder(tape.parent) for tape in sorted(ROOT.glob("runs/example-*/tape.jsonl"))]


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Reports are made anew from their tapes; scripts and styles are copied."""
    for folder in committed_runs():
        text = report_page(folder, RunView.read(folder), home=f"../{GALLERY.replace('.md', '.html')}")
        files.append(File.generated(config, f"gallery/{folder.id}.html", content=text))
    if not MERMAID.is_file():
        raise PluginError(f"{MERMAID.relative_to(ROOT)} is missing: `make docs` fetches it with npm")
    for source in (MERMAID, *(Path(__file__).parent / name for name in OWN)):
        files.append(File.generated(config, f"assets/{source.name}", abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The gallery lists every committed run."""
    if page.file.src_uri != GALLERY:
        return markdown
    rows = [_row(folder) for folder in committed_runs()]
    return markdown.replace(LIST, "\n".join([*table(HEAD, [])[:2], *rows]))


def _row(folder: RunFolder) -> str:
    view = RunView.read(folder)
    facts, gain = view.ledger.facts, view.gain
    best = view.best_verdict.hypothesis if view.best_verdict else "baseline"
    cells = [
        f"{facts.scope.gpu_count} x {facts.scope.gpu}" if facts else "unknown",
        "simulated" if view.simulated else "measured",
        f"{facts.engine} {facts.engine_version or ''}" if facts else "",
        facts.scope.model if facts else "",
        view.goal,
        str(len(view.ledger.hypotheses)),
        f"{best} {effect_text(gain)}" if gain else best,
    ]
    link = f"[{folder.id}](gallery/{folder.id}.html)"
    return f"| {' | '.join([link, *map(cell, cells)])} |"
