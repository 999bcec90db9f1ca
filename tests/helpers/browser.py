"""A real browser for the tests of pages: Chromium, driven by Selenium; they are skipped where there is none."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.deadlines import SECONDS

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


def open_browser(profile: Path) -> Any:
    """A browser with a profile of its own; the test is skipped where there is none."""
    if not (BROWSER and DRIVER):
        pytest.skip("there is no chromium with chromedriver here")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_script_timeout(300)  # every number of a page is worked out in one call
    return driver


def until(browser: Any, true: Callable[[Any], Any]) -> Any:
    """Wait until something is true of what the browser shows, and return it. Selenium alone looks twice a second."""
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(browser, SECONDS, poll_frequency=0.02).until(true)
