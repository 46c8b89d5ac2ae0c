"""Where measurements are kept, and how their files are written."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

CACHE = "RELAYOUT_CACHE"
"""The environment variable that names the folder of measurements."""


def cache_folder() -> Path:
    if CACHE in os.environ:
        return Path(os.environ[CACHE])
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "relayout"


def read_json(path: Path) -> Any:
    """What a file holds; one that cannot be read counts as none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def write_json(path: Path, record: Any) -> None:
    """Write a file whole, or leave it as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=1, sort_keys=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        file.write(text)
    Path(file.name).replace(path)
