"""Models run as they are: by ONNX Runtime, unoptimised, or by onnx's reference evaluator."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
from onnx.reference import ReferenceEvaluator

Array = npt.NDArray[Any]
Feeds = Mapping[str, Any]

ORT, REFERENCE = "ONNX Runtime", "the reference evaluator"
NEWEST_OF_ORT = 25
"""The newest opset that ONNX Runtime is asked for."""


OLDEST_OF_REFERENCE = 13


class NotRunError(Exception):
    """A runtime does not take a model, or not on these inputs."""


def run(model: onnx.ModelProto, feeds: Feeds, runtime: str) -> list[Any]:
    """What a model gives; whatever keeps it from running is a `NotRunError`."""
    try:
        return _by_ort(model, feeds) if runtime == ORT else _by_reference(model, feeds)
    except Exception as error:
        raise NotRunError(" ".join(str(error).split())[:200]) from error


def runtimes_for(opset: int) -> tuple[str, ...]:
    """The runtimes to ask, in this order.

    The reference evaluator runs some operators as if the opset were 13, Softmax for one.
    """
    runtimes = (ORT, REFERENCE) if opset >= OLDEST_OF_REFERENCE else (ORT,)
    return runtimes if opset <= NEWEST_OF_ORT else (REFERENCE,)


def _by_ort(model: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    providers = ["CPUExecutionProvider"]
    session = ort.InferenceSession(model.SerializeToString(), options, providers=providers)
    return list(session.run(None, dict(feeds)))


def _by_reference(model: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    with np.errstate(all="ignore"), warnings.catch_warnings(), _quiet():
        warnings.simplefilter("ignore")
        return list(ReferenceEvaluator(model).run(None, dict(feeds)))


def _quiet() -> contextlib.AbstractContextManager[Any]:
    """Some of its operators print."""
    return contextlib.redirect_stdout(io.StringIO())


def difference(wanted: Sequence[Any], found: Sequence[Any], exact: Sequence[bool]) -> str | None:
    """How results differ: exact ones by a bit, the others by more than rounding."""
    if len(wanted) != len(found):
        return f"{len(found)} outputs instead of {len(wanted)}"
    for place, (one, other) in enumerate(zip(wanted, found, strict=True)):
        what = _differing(one, other, is_exact=exact[place])
        if what is not None:
            return f"output {place}: {what}"
    return None


LARGEST = 1e30
"""Beyond this, runtimes overflow each in its own place."""
TOLERANCE = {np.dtype(np.float16): 2e-2, np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-6}


def _differing(one: Any, other: Any, *, is_exact: bool) -> str | None:
    if isinstance(one, list):
        same_length = isinstance(other, list) and len(one) == len(other)
        return None if same_length and not difference(one, other, [is_exact] * len(one)) else "list"
    if one is None or other is None:
        return None if one is other else "an optional"
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape or (one.dtype != other.dtype and one.dtype.kind not in "OU"):
        return f"{one.dtype}{list(one.shape)} became {other.dtype}{list(other.shape)}"
    is_equal = one == other if is_exact or one.dtype not in TOLERANCE else _close(one, other)
    if one.dtype.kind == "f":
        is_equal = is_equal | (np.isnan(one) & np.isnan(other))
    if np.all(is_equal):
        return None
    at = tuple(np.argwhere(~np.asarray(is_equal))[0].tolist())
    return f"at {list(at)} {one[at]} became {other[at]}"


def _close(one: Array, other: Array) -> Any:
    finite = np.abs(one[np.isfinite(one)]).astype(np.float64)
    scale = TOLERANCE[one.dtype] * max(1.0, finite.max(initial=0.0))
    with np.errstate(all="ignore"):
        away = np.abs(one.astype(np.float64) - other.astype(np.float64))
        return (away <= scale) | (one == other) | (np.abs(one) > LARGEST)
