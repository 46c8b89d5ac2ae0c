"""The child of an isolated race: opens what was built, and has it take turns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from relayout.backends.candidates import CompiledModel
from relayout.backends.fastest.opening import open_way, options_of
from relayout.backends.fastest.race import race
from relayout.backends.fastest.ranking import RunWay, TimedWay
from relayout.errors import RelayoutError
from relayout.timing.engines import Feeds
from relayout.timing.feeds import feeds_of
from relayout.verify.verdict import NumericOptions
from relayout.verify.worker import serve


def _reply(request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        feeds = feeds_of(Path(request["given"]), NumericOptions.from_json(request["inputs"]))
    except RelayoutError as error:
        return {"error": str(error)}
    shapes = {name: list(np.shape(value)) for name, value in feeds.items()}
    return {"shapes": shapes, **(_raced(request, feeds) if request["built"] else {})}


def _raced(request: Mapping[str, Any], feeds: Feeds) -> dict[str, Any]:
    models, refused = _opened(request, feeds)
    if not models:
        return {"ways": [each.to_json() for each in refused], "line": "", "is_noisy": False}
    wanted = RunWay(*request["line"])
    line = wanted if wanted in models else next(iter(models))
    settings = {"threads": request["options"]["threads"], "seconds": request["seconds"]}
    result = race(models, line, feeds, **settings)
    ways = [each.to_json() for each in (*result.ways, *refused)]
    return {"ways": ways, "line": str(line), "is_noisy": result.is_noisy}


def _opened(
    request: Mapping[str, Any], feeds: Feeds
) -> tuple[dict[RunWay, CompiledModel], list[TimedWay]]:
    """What runs, and why the rest does not."""
    models, refused = {}, []
    options = options_of(request["options"])
    for backend, name, path in request["built"]:
        way = RunWay(backend, name)
        try:
            model = open_way(way, Path(path), options)
            model(feeds)
            models[way] = model
        except Exception as error:  # noqa: BLE001 - runtimes raise exceptions of any class
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            refused.append(TimedWay(way, refusal=reason))
    return models, refused


if __name__ == "__main__":
    serve(_reply)
