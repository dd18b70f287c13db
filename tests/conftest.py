"""Real parts of the machine: a test that needs one is skipped with the command that enables it.

Under REQUIRE_ALL=1 (set by CI) a missing part is a failure, unless the machine itself may forbid it.
"""

import os
from collections.abc import Generator, Iterator

import pytest
from parts.catalogue import PARTS
from parts.turns import turn

missing: dict[str, str] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run benchmarks and soaks at their full counts")


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """True for `make bench` and `make soak`; a small fixed-seed sample otherwise."""
    return bool(request.config.getoption("--full"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool | None, bool | None]:
    """Outside the time-out of the test: waiting for a turn is not its time."""
    with turn(alone=item.get_closest_marker("alone") is not None):
        return (yield)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("part"):
        name = mark.args[0]
        part = PARTS[name]
        if part.present():
            continue
        if os.environ.get("REQUIRE_ALL") == "1" and not part.may_be_forbidden:
            pytest.fail(f"{name} is missing and REQUIRE_ALL=1: {part.enable}")
        missing[name] = part.enable
        pytest.skip(f"{name} is missing: {part.enable}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name, enable in sorted(missing.items()):
        terminalreporter.write_line(f"skipped real part {name}: enable it with `{enable}`")


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A user's MOEAGENT_ variables must not change what the tests see."""
    for name in [n for n in os.environ if n.startswith("MOEAGENT_")]:
        monkeypatch.delenv(name)
    return
