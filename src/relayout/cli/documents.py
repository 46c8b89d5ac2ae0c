"""JSON documents that commands read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from relayout.errors import RelayoutError


def read_json(path: str) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise RelayoutError(f"cannot read {path!r}: {error.strerror}") from None
    except ValueError:
        raise RelayoutError(f"{path!r} is not JSON") from None
