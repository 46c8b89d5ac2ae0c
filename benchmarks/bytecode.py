"""Bytecode as after an installation, whatever the environment of a benchmark forbids."""

from __future__ import annotations

import os
from pathlib import Path


def with_bytecode(folder: Path) -> dict[str, str]:
    """The environment of a process that keeps its bytecode in a folder."""
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder)}
