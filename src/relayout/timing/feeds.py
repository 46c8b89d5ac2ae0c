"""Inputs that a model is timed on: values in the ranges it takes, at the largest lengths tried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from relayout.errors import RelayoutError
from relayout.verify.cases import Case, CaseFinder
from relayout.verify.interface import UnreadableModelError, interface_of
from relayout.verify.runtimes import ONNX_RUNTIME, ExhaustedError, RefusedError, read
from relayout.verify.verdict import NumericOptions


def feeds_of(path: Path, options: NumericOptions) -> dict[str, Any]:
    """Values for the inputs of a model that have no default, the same ones for the same seed."""
    try:
        interface = interface_of(path).without_defaults()
        run = ONNX_RUNTIME.load(path, interface)
        cases = CaseFinder(run, interface, options, read(path)).find()
    except (UnreadableModelError, RefusedError, ExhaustedError) as error:
        raise RelayoutError(f"no inputs were found to time the model on: {error}") from None
    return max(cases, key=_size).feeds


def _size(case: Case) -> tuple[int, bool]:
    """How much a case gives a model to do; of equals, one with numbers of any value."""
    return sum(map(np.size, case.feeds.values())), case.draw.normal
