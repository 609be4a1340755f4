"""What was measured with what, for the pages of measurements; nothing that names the machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform


def measured_with(*packages: str) -> str:
    """The machine's size and the versions of these packages, as a sentence."""
    found = [f"Python {platform.python_version()}"]
    for package in packages:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{package} not installed")
    return f"{os.cpu_count()} CPUs ({platform.machine()}), {', '.join(found)}."
