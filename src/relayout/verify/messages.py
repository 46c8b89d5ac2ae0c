"""Model files as messages, each read once for all that only look at it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import onnx

KEPT = 2
"""A comparison is of two models."""


def message_of(path: Path) -> onnx.ModelProto:
    """The message of a file, without external data; it is shared and must not be changed."""
    state = path.stat()
    return _message(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=KEPT)
def _message(path: Path, changed: int, size: int) -> onnx.ModelProto:
    del changed, size  # what tells a file from one that was there before
    return onnx.load(path, load_external_data=False)
