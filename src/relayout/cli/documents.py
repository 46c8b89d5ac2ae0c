"""JSON documents that commands read and write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from relayout.errors import RelayoutError


def check_folder(path: str) -> None:
    """Refuse a place that cannot be written to before any work is done for it."""
    if not Path(path).parent.is_dir():
        raise RelayoutError(f"cannot write {path!r}: its folder does not exist")


def write_json(path: str, document: Any) -> None:
    try:
        Path(path).write_text(json.dumps(document), encoding="utf-8")
    except OSError as error:
        raise RelayoutError(f"cannot write {path!r}: {error.strerror}") from None


def read_json(path: str) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise RelayoutError(f"cannot read {path!r}: {error.strerror}") from None
    except ValueError:
        raise RelayoutError(f"{path!r} is not JSON") from None
