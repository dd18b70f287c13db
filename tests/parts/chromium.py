"""A real headless Chromium that looks at pages, and what it says about them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

ROOT = Path(__file__).parents[2]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass
class Browser:
    """One browser; `look` opens a page in it as a device of a size and a colour scheme would."""

    driver: webdriver.Chrome

    def look(self, address: str, *, width: int = 1280, scheme: str = "light") -> None:
        """Open the page; logs of the page before are dropped."""
        self._cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._cdp(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(address)

    def script(self, text: str) -> Any:
        """What a script in the page returns."""
        return self.driver.execute_script(text)

    def complaints(self) -> list[str]:
        """Errors and warnings on the console since `look`."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> set[str]:
        """Addresses that were asked for since `look`."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return {params["request"]["url"] for params in sent}

    def axe(self) -> list[str]:
        """Serious and critical findings of axe-core, one line each."""
        self._cdp("Page.setBypassCSP", enabled=True)
        self.driver.refresh()
        self.driver.execute_script(AXE.read_text())
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(done)"
        )
        self._cdp("Page.setBypassCSP", enabled=False)
        return [
            f"{v['id']}: {v['help']}: {node['target']}"
            for v in found["violations"]
            if v["impact"] in ("serious", "critical")
            for node in v["nodes"]
        ]

    def _cdp(self, method: str, **parameters: Any) -> None:
        self.driver.execute_cdp_cmd(method, parameters)


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """A browser with a fresh profile; it is gone afterwards."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in (*QUIET, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    driver.set_script_timeout(60)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
