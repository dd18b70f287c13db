"""The documentation site, built strictly and looked at in a real browser."""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from threading import Thread

import pytest
from docs.blocks import DOCS, ROOT
from parts.chromium import Browser, chromium

pytestmark = pytest.mark.part("mermaid")
LOOKED_AT = ("index.html", "first-campaign.html", "graph.html", "commands.html", "gallery.html")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        return


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` does; a link that leads nowhere fails here."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module", params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def browser(scheme: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One for each scheme: the theme remembers the first that it sees."""
    with chromium(tmp_path_factory.mktemp("profile")) as made:
        yield made


def test_every_page_is_in_the_site(site: Path) -> None:
    assert {path.with_suffix(".html").name for path in DOCS.glob("*.md")} <= {
        path.name for path in site.glob("*.html")
    }
    assert not (site / "_site").exists()


def test_the_gallery_has_every_run_of_the_repository(site: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "runs"], cwd=ROOT, capture_output=True, text=True, check=True)
    runs = {line.split("/")[1] for line in listed.stdout.splitlines() if line.endswith("tape.jsonl")}
    assert runs
    page = (site / "gallery.html").read_text()
    for run in runs:
        assert f'href="gallery/{run}.html"' in page
        assert f"Run {run}" in (site / "gallery" / f"{run}.html").read_text()


@pytest.mark.part("chromium")
def test_pages_load_nothing_from_elsewhere_and_fit(browser: Browser, address: str, scheme: str) -> None:
    for page, width in product(LOOKED_AT, (1280, 390)):
        browser.look(address + page, width=width, scheme=scheme)
        shown = browser.script("return document.body.dataset.mdColorScheme")
        assert shown == {"light": "default", "dark": "slate"}[scheme]
        assert browser.complaints() == [], page
        asked = {each for each in browser.requests() if not each.startswith(("data:", "blob:", address))}
        assert asked == set(), page
        assert browser.script("return document.documentElement.scrollWidth") <= width, page


@pytest.mark.part("chromium")
@pytest.mark.part("axe")
def test_axe_has_no_serious_finding(browser: Browser, address: str, scheme: str) -> None:
    for page, width in product((*LOOKED_AT, "your-box.html"), (1280, 390)):
        browser.look(address + page, width=width, scheme=scheme)
        assert browser.axe() == [], (page, width)


@pytest.mark.part("chromium")
def test_the_picture_of_the_loop_is_drawn(browser: Browser, address: str) -> None:
    browser.look(f"{address}graph.html")
    drawn = browser.driver.execute_async_script(
        "const done = arguments[0]; let left = 100; const look = () => {"
        "const height = document.querySelector('div.mermaid')?.getBoundingClientRect().height ?? 0;"
        "if (height > 200 || !--left) done(height); else setTimeout(look, 100) }; look()"
    )
    assert drawn > 200
