"""A browser for the tests of the explorer: where one is; run as a program, installs one if none is.

Debian's where this is root of a Debian machine, as in a container; otherwise Playwright's own, into
the user's cache. Where neither can be had, the tests here are skipped, and say so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

SECONDS = 300


def find_chromium() -> str | None:
    """Where CHROMIUM says, on the path, or where Playwright puts its own."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        with sync_playwright() as started:
            own = started.chromium.executable_path
        found = own if Path(own).exists() else None
    return found


def ways() -> list[list[list[str]]]:
    """To install one: each a list of commands."""
    own = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return [own]
    install = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", "chromium"]
    return [[["apt-get", "update", "-qq"], install], own]


def main() -> None:
    for commands in [] if find_chromium() else ways():
        try:
            for command in commands:
                subprocess.run(command, check=True, timeout=SECONDS, capture_output=True)
        except (OSError, subprocess.SubprocessError):
            continue
        if find_chromium():
            break
    print(f"Chromium: {find_chromium() or 'cannot be installed here, so its tests are skipped'}")


if __name__ == "__main__":
    main()
