"""The child that makes a pair of models smaller: writes the parts, answers how they differ."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

from relayout.verify.reduction.search import reduced
from relayout.verify.verdict import NumericOptions, NumericVerdict, unknown
from relayout.verify.worker import answer


def _reduced(request: Mapping[str, Any], options: NumericOptions) -> NumericVerdict:
    before, after = Path(request["before"]), Path(request["after"])
    pair = reduced(before, after, options, request["seconds"])
    if pair is None:
        return unknown("the models do not differ in runs, so there is nothing to make smaller")
    folder = Path(request["folder"])
    onnx.save(pair.before, folder / before.name)
    onnx.save(pair.after, folder / request["after_name"])
    return pair.verdict


if __name__ == "__main__":
    answer(_reduced)
