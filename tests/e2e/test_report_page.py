"""The HTML report in a real browser, opened from disk."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.command import moeagent
from parts.chromium import Browser, chromium
from parts.hostile import HOSTILE, write_hostile_run
from parts.made_run import write_run

pytestmark = pytest.mark.part("chromium")

SIZES = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as made:
        yield made


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report that the command line wrote."""
    folder = tmp_path_factory.mktemp("report")
    write_run(folder / "runs")
    moeagent(folder, "report", "made", "--html", "report.html")
    return (folder / "report.html").as_uri()


def brightness(browser: Browser, name: str) -> int:
    numbers = browser.script(f"return getComputedStyle(document.body).{name}.match(/\\d+/g).map(Number)")
    return sum(numbers[:3])


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_page_from_disk_is_quiet_and_fits(browser: Browser, page: str, width: int, scheme: str) -> None:
    browser.look(page, width=width, scheme=scheme)
    assert browser.complaints() == []
    assert browser.requests() == {page}
    assert browser.script("return document.documentElement.scrollWidth") <= width
    assert (brightness(browser, "color") > brightness(browser, "backgroundColor")) is (scheme == "dark")


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_pictures_and_tables_are_there_and_follow_the_scheme(
    browser: Browser, page: str, width: int, scheme: str
) -> None:
    browser.look(page, width=width, scheme=scheme)
    boxes = browser.script(
        "return [...document.querySelectorAll('svg.plot')].map(s => s.getBoundingClientRect().width)"
    )
    assert len(boxes) == 4
    assert all(300 < box <= width for box in boxes)
    text_fill = browser.script("return getComputedStyle(document.querySelector('svg.plot text')).fill")
    assert text_fill in browser.script(
        "return ['--ink', '--quiet'].map(n => { document.body.style.outlineColor = `var(${n})`;"
        " return getComputedStyle(document.body).outlineColor })"
    )
    tables = browser.script(
        "return [...document.querySelectorAll('table')]"
        ".map(t => [t.caption.textContent, t.tBodies[0].rows.length])"
    )
    assert all(caption and rows for caption, rows in tables)
    assert len(tables) >= 8


def test_a_point_of_a_picture_leads_to_its_hypothesis(browser: Browser, page: str) -> None:
    browser.look(page)
    browser.driver.find_element("css selector", "svg.plot a[href='#H1']").click()
    assert browser.script("return location.hash") == "#H1"
    assert browser.script("return document.querySelector('#H1').checkVisibility()")


def test_everything_is_printed(browser: Browser, page: str) -> None:
    browser.look(page)
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    hidden = browser.script(
        "return [...document.querySelectorAll('details > :not(summary)')]"
        ".filter(x => !x.checkVisibility()).length"
    )
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert hidden == 0


@pytest.mark.part("axe")
@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_axe_has_no_serious_finding(browser: Browser, page: str, width: int, scheme: str) -> None:
    browser.look(page, width=width, scheme=scheme)
    assert browser.axe() == []


def test_hostile_text_is_shown_and_not_executed(browser: Browser, tmp_path: Path) -> None:
    write_hostile_run(tmp_path / "runs")
    moeagent(tmp_path, "report", "hostile", "--html", "report.html")
    address = (tmp_path / "report.html").as_uri()
    browser.look(address, width=390)
    assert browser.complaints() == []
    assert browser.requests() == {address}
    assert browser.script("return window.broken") is None
    assert browser.script("return document.querySelectorAll('script, img, iframe, b[onclick]').length") == 0
    shown = browser.script("return document.body.textContent")
    assert HOSTILE["html"] in shown
    assert "\\x1b[31m" in shown
    assert HOSTILE["markup"] in shown
    assert "more characters" in shown
    assert browser.script("return document.documentElement.scrollWidth") <= 390


def test_two_hundred_experiments_open_in_two_seconds_and_stay_small(browser: Browser, tmp_path: Path) -> None:
    write_run(tmp_path / "runs", hypotheses=200)
    moeagent(tmp_path, "report", "made", "--html", "report.html")
    path = tmp_path / "report.html"
    assert path.stat().st_size < 5_000_000
    browser.look(path.as_uri(), width=1280)
    began = time.monotonic()
    browser.driver.get(path.as_uri())
    took = time.monotonic() - began
    print(f"200 experiments: {path.stat().st_size / 1e6:.1f} MB, opened in {took:.2f} s")
    assert (
        len(browser.script("return [...document.querySelectorAll('details.card dl')].map(x => x.id)")) == 200
    )
