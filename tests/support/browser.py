"""Debian's Chromium without a screen, driven as a person would drive it. Needs the packages
`chromium` and `chromium-driver`.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

PHONE, DESKTOP = 390, 1280


def is_here() -> bool:
    """Whether the packages are installed."""
    return shutil.which("chromium") is not None and shutil.which("chromedriver") is not None


@contextmanager
def open_browser(*, script: bool = False) -> Iterator[webdriver.Chrome]:
    """A browser of its own, with nothing in it; without JavaScript unless `script`."""
    options = Options()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.add_argument("--lang=en")
    options.add_argument("--hide-scrollbars")
    options.add_argument("--proxy-server=direct://")
    if not script:
        prefs = {"profile.managed_default_content_settings.javascript": 2}
        options.add_experimental_option("prefs", prefs)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = Service(str(shutil.which("chromedriver")), log_output=subprocess.DEVNULL)
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_page_load_timeout(60)
    try:
        yield driver
    finally:
        driver.quit()


def show_as(driver: webdriver.Chrome, *, width: int, dark: bool) -> None:
    """Be a screen of that width, in that scheme of colours."""
    screen = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    still = {"name": "prefers-reduced-motion", "value": "reduce"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, still]})


def page_size(driver: webdriver.Chrome) -> tuple[int, int]:
    """What the page takes: width and height in pixels of its own."""
    size = driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
    return round(size["width"]), round(size["height"])


def photograph(driver: webdriver.Chrome, path: Path, *, most: int = 6000) -> None:
    """The whole page as a picture, down to `most` pixels."""
    width, height = page_size(driver)
    clip: dict[str, Any] = {"x": 0, "y": 0, "width": width, "height": min(height, most)}
    taken = driver.execute_cdp_cmd(
        "Page.captureScreenshot",
        {"format": "png", "captureBeyondViewport": True, "clip": {**clip, "scale": 1}},
    )
    path.write_bytes(base64.b64decode(taken["data"]))


def complaints(driver: webdriver.Chrome) -> list[str]:
    """What the browser had to say about the pages since it was asked last: resources that are
    missing or forbidden, errors."""
    return [str(entry["message"]) for entry in driver.get_log("browser")]
