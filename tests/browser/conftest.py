"""A browser for tests of the page: skipped where Chromium is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import find_chromium
from playwright.sync_api import sync_playwright

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Opened:
    """A page, and what it asked for and complained of."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self.requests.append(request.url))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    found = find_chromium()
    if found is None:
        pytest.skip("Chromium is not installed, and CHROMIUM does not say where it is")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def opening(chromium: Any) -> Iterator[Callable[..., Opened]]:
    """Opens a file; what it holds is closed with the test."""
    contexts = []

    def opened(path: Path, width: int = 1280, height: int = 900, **more: Any) -> Opened:
        context = chromium.new_context(viewport={"width": width, "height": height}, **more)
        contexts.append(context)
        one = Opened(context.new_page())
        one.page.goto(path.as_uri())
        one.page.wait_for_function("window.ldf !== undefined")
        return one

    yield opened
    for context in contexts:
        context.close()
