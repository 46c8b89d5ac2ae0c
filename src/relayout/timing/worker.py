"""The child of an isolated contest: a request on its input, the contest on its output."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relayout.errors import RelayoutError
from relayout.timing.contest import contest
from relayout.timing.engines import ENGINES
from relayout.verify.verdict import NumericOptions
from relayout.verify.worker import serve


def _held(request: Mapping[str, Any]) -> dict[str, Any]:
    files = {name: Path(path) for name, path in request["files"].items()}
    options = NumericOptions.from_json(request["options"])
    limits = {"threads": request["threads"], "seconds": request["seconds"]}
    try:
        return contest(files, ENGINES[request["engine"]], options, **limits).to_json()
    except RelayoutError as error:
        return {"error": str(error)}


if __name__ == "__main__":
    serve(_held)
