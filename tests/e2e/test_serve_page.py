"""The live page in a real browser, served by a real `moeagent serve`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.command import kill_hard, moeagent, start, wait_for
from e2e.small_run import settings
from parts.chromium import Browser, chromium
from parts.hostile import write_hostile_run
from parts.made_run import BASELINE, MadeRun, facts, hypothesis, verdict, write_run
from parts.served import Served, served

from moeagent.memory.ledger import Incumbent
from moeagent.memory.lock import held
from moeagent.memory.records import ConfigChange, VerdictKind

pytestmark = pytest.mark.part("chromium")

SIZES = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
PAGES = (
    "",
    "runs/made",
    "runs/made/log",
    "runs/made/hypotheses/H3",
    "runs/made/launches/L5/log?find=a&line=3",
    "runs/made/report",
    "runs/damaged",
    "findings?text=chunked",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as made:
        yield made


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    write_run(folder / "runs")
    write_hostile_run(folder / "runs")
    moeagent(folder, "findings", "--rebuild")
    tape = write_run(folder / "runs", "damaged").tape
    data = tape.read_bytes()
    tape.write_bytes(data[: len(data) // 2] + b"X" + data[len(data) // 2 + 1 :])
    return folder


@pytest.fixture(scope="module")
def site(shelf: Path) -> Iterator[Served]:
    with served(shelf) as running:
        yield running


def text_of(browser: Browser, selector: str) -> str:
    return browser.script(f"return document.querySelector({selector!r})?.innerText ?? ''")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_pages_are_quiet_fit_and_ask_no_other_host(
    browser: Browser, site: Served, page: str, width: int, scheme: str
) -> None:
    browser.look(site.address + page, width=width, scheme=scheme)
    assert browser.complaints() == []
    assert {address.split("/")[2] for address in browser.requests() if not address.startswith("data:")} == {
        f"127.0.0.1:{site.port}"
    }
    assert browser.script("return document.documentElement.scrollWidth") <= width
    numbers = browser.script(
        "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    )
    assert (sum(numbers[:3]) < 200) is (scheme == "dark")


@pytest.mark.part("axe")
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [SIZES[0], SIZES[3]])
def test_axe_has_no_serious_finding(
    browser: Browser, site: Served, page: str, width: int, scheme: str
) -> None:
    browser.look(site.address + page, width=width, scheme=scheme)
    assert browser.axe() == []


def test_hostile_text_is_shown_and_not_executed(browser: Browser, site: Served) -> None:
    for page in (
        "runs/hostile",
        "runs/hostile/log",
        "runs/hostile/hypotheses/H1",
        "runs/hostile/launches/L2/log",
    ):
        browser.look(site.address + page, width=390)
        assert browser.complaints() == []
        assert browser.script("return window.broken") is None
        assert browser.script("return document.querySelectorAll('img, iframe, b[onclick]').length") == 0
        assert browser.script("return document.documentElement.scrollWidth") <= 390


def test_typing_narrows_the_log_without_a_new_page(browser: Browser, site: Served) -> None:
    browser.look(f"{site.address}runs/made/log")
    browser.script("window.stayed = true")
    browser.driver.find_element("css selector", "input[name=q]").send_keys("oom")
    wait_for(lambda: "1 of 5" in text_of(browser, "#found"), "the narrowed list")
    assert browser.script("return window.stayed")
    assert browser.script("return location.search").startswith("?q=oom")
    browser.driver.find_element("css selector", "#found tbody a").click()
    wait_for(lambda: "H3" in browser.driver.title, "the hypothesis")


def test_the_page_of_a_run_follows_its_tape(browser: Browser, site: Served, shelf: Path) -> None:
    run = MadeRun(shelf / "runs", "growing")
    change = ConfigChange(set_flags={"--chunked-prefill-size": 1024})
    with held(run.folder.path):
        run.decide(facts())
        run.decide(Incumbent(config=BASELINE, hypothesis=None))
        run.launch(BASELINE)
        browser.look(f"{site.address}runs/growing")
        browser.script("window.stayed = true")
        assert "under way" in text_of(browser, "#live")
        run.decide(hypothesis(1, change, BASELINE))
        run.launch(BASELINE.apply(change), "H1", factor=1.1)
        run.decide(verdict(1, VerdictKind.IMPROVED, 0.1))
        run.decide(Incumbent(config=BASELINE.apply(change), hypothesis="H1"))
        wait_for(lambda: "H1 is better by +10.0%" in text_of(browser, "#live"), "the verdict on the page")
        assert "L2" in text_of(browser, "#live")
    wait_for(lambda: "cut off" in text_of(browser, "#live"), "the lost worker on the page")
    assert browser.script("return window.stayed")
    assert browser.complaints() == []
    run.close()


def test_a_real_run_is_watched_from_its_start_to_its_end(browser: Browser, tmp_path: Path) -> None:
    settings(tmp_path)
    with served(tmp_path) as site:
        browser.look(site.address)
        browser.script("window.stayed = true")
        assert "There is no run here yet" in text_of(browser, "#live")
        run = start(tmp_path, "run", "--run-id", "watched", "--goal", "max-throughput")
        try:
            wait_for(lambda: "watched" in text_of(browser, "#live"), "the run in the list")
            wait_for(lambda: "finished" in text_of(browser, "#live"), "the end of the run", timeout_s=120)
            told, _ = run.communicate(timeout=60)
            assert run.returncode == 0, told
        finally:
            kill_hard(run)
        assert browser.script("return window.stayed")
        browser.driver.find_element("link text", "watched").click()
        wait_for(lambda: "The answer" in text_of(browser, "#content"), "the page of the run")
        assert browser.complaints() == []


def test_a_token_is_taken_out_of_the_address(browser: Browser, shelf: Path) -> None:
    with served(shelf, "--token") as site:
        browser.look(site.address)
        assert browser.script("return location.search") == ""
        assert "made" in text_of(browser, "#live")
        browser.look(f"http://127.0.0.1:{site.port}/runs/made")
        assert "H1 is better" in text_of(browser, "#live")
