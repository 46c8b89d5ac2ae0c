"""Model files as messages, each read once for all that only look at it."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import onnx

KEPT = 2
"""A comparison is of two models."""

_FileState: TypeAlias = tuple[int, int]
"""What tells a file from one that was there before: when it was changed, and its size."""

_kept: dict[Path, tuple[_FileState, onnx.ModelProto]] = {}


def message_of(path: Path) -> onnx.ModelProto:
    """The message of a file, without external data; it is shared and must not be changed."""
    status = path.stat()
    state = status.st_mtime_ns, status.st_size
    if path in _kept and _kept[path][0] == state:
        return _kept[path][1]
    release(path)
    if len(_kept) == KEPT:
        release(next(iter(_kept)))
    _kept[path] = state, onnx.load(path, load_external_data=False)
    return _kept[path][1]


def release(path: Path) -> None:
    """Let the memory of a message go: whoever asks for it again has it read again."""
    _kept.pop(path, None)
