"""Whether two models compute the same, by numbers."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx.inliner import inline_local_functions

from benchmarks.reference import Reference

Array = np.ndarray[Any, Any]
Feeds = dict[str, Array]

# The largest difference that is rounding, relative to the largest number of an output.
EQUAL = 1e-9
# In proofs that allow other rounding, differences up to this may be rounding too.
ROUNDED = 1e-3


class CannotRunError(Exception):
    pass


class Runner:
    """A model and what it gives for inputs drawn once."""

    def __init__(self, model: onnx.ModelProto) -> None:
        whole = inline_local_functions(model) if model.functions else model
        self.evaluator = Reference(whole)

    def run(self, feeds: Feeds) -> list[Array]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                results = self.evaluator.run(None, dict(feeds))
            except Exception as error:
                raise CannotRunError(str(error)) from error
        return [np.asarray(one) for one in results]


def runtime_results(model: onnx.ModelProto, given: Feeds) -> list[Array]:
    """What ONNX Runtime makes of the model as it is: the reference has faults of its own.

    In a process of its own, which an assertion of the runtime may end.
    """
    with TemporaryDirectory() as folder:
        files = [str(Path(folder, name)) for name in ("model.onnx", "given.npz", "found.npz")]
        onnx.save(model, files[0])
        np.savez(files[1], **given)  # type: ignore[arg-type] # feeds are arrays
        command = [sys.executable, "-m", "benchmarks.near_misses.in_runtime", *files]
        ended = subprocess.run(command, capture_output=True, check=False)
        if ended.returncode:
            raise CannotRunError(ended.stderr.decode(errors="replace"))
        with np.load(files[2]) as found:
            return [found[name] for name in found.files]


def feeds(model: onnx.ModelProto, seed: int) -> Iterator[tuple[dict[str, int], Feeds]]:
    """Inputs by name, for some lengths of open axes: generic numbers and small whole ones."""
    drawn = np.random.default_rng(seed)
    names = sorted(
        {d.dim_param for p in model.graph.input for d in p.type.tensor_type.shape.dim} - {""}
    )
    lengths = [dict.fromkeys(names, 3)] if names else [{}]
    if names:
        lengths += [dict.fromkeys(names, 2), {n: 2 + i for i, n in enumerate(names)}]
        lengths += [dict.fromkeys(names, 4)]
    for bound in lengths:
        for way in range(3):
            found = {}
            for port in model.graph.input:
                dims = port.type.tensor_type.shape.dim
                shape = [bound[d.dim_param] if d.dim_param else d.dim_value for d in dims]
                numbers = drawn.normal(size=shape)
                whole = drawn.integers(-2, 3, size=shape).astype(np.float64)
                found[port.name] = (numbers, whole, 3 * numbers)[way]
            yield bound, found


def difference(one: Sequence[Array], other: Sequence[Array]) -> float:
    """The largest difference of outputs, relative to the largest number; infinite for shapes."""
    worst = 0.0
    for left, right in zip(one, other, strict=True):
        if left.shape != right.shape or left.dtype != right.dtype:
            return float("inf")
        a, b = left.astype(np.float64), right.astype(np.float64)
        nan = np.isnan(a)
        if (nan != np.isnan(b)).any() or (np.isinf(a) != np.isinf(b)).any():
            return float("inf")
        a, b = np.nan_to_num(a), np.nan_to_num(b)
        scale = max(float(np.max(np.abs(a), initial=0.0)), 1e-3)
        worst = max(worst, float(np.max(np.abs(a - b), initial=0.0)) / scale)
    return worst
