"""The child of an isolated comparison of a built model with the one it was made of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relayout.backends.comparing import compare_compiled
from relayout.backends.fastest.opening import open_way, options_of
from relayout.backends.fastest.ranking import RunWay
from relayout.verify.runtimes import Run
from relayout.verify.verdict import NumericOptions, NumericVerdict
from relayout.verify.worker import answer


def _built(request: Mapping[str, Any], inputs: NumericOptions) -> NumericVerdict:
    way, path = RunWay(*request["way"]), Path(request["built"])
    options = options_of(request["settings"])

    def load() -> Run:
        model = open_way(way, path, options)
        return lambda feeds: list(model(feeds).values())

    given = Path(request["given"])
    return compare_compiled(given, way.backend, load, inputs, fixed=options.fix_defaults)


if __name__ == "__main__":
    answer(_built)
