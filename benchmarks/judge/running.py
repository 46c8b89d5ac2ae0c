"""Models run as they are: by ONNX Runtime, unoptimised, or by onnx's reference evaluator."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort

from benchmarks.reference import Reference
from relayout.graph.read import schema_of

Array = npt.NDArray[Any]
Feeds = Mapping[str, Any]
Evaluate = Callable[[dict[str, Any]], Sequence[Any]]

ORT, REFERENCE = "ONNX Runtime", "the reference evaluator"
NEWEST_OF_ORT, NEWEST_IR_OF_ORT = 25, 11
"""The newest opset and form of file that ONNX Runtime is asked for."""


OLDEST_OF_REFERENCE = 13


class NotRunError(Exception):
    """A runtime does not take a model, or not on these inputs."""


@dataclass(frozen=True, slots=True)
class Session:
    """A model that a runtime has taken; whatever keeps it from running is a `NotRunError`."""

    runtime: str
    evaluate: Evaluate

    @classmethod
    def of(cls, model: onnx.ModelProto, runtime: str) -> Session:
        try:
            return cls(runtime, (_by_ort if runtime == ORT else _by_reference)(model))
        except Exception as error:
            raise _not_run(error) from error

    def run(self, feeds: Feeds) -> list[Any]:
        try:
            return list(self.evaluate(dict(feeds)))
        except Exception as error:
            raise _not_run(error) from error


def _not_run(error: Exception) -> NotRunError:
    return NotRunError(" ".join(str(error).split())[:200])


def run(model: onnx.ModelProto, feeds: Feeds, runtime: str) -> list[Any]:
    """What a model gives that is run once."""
    return Session.of(model, runtime).run(feeds)


def runtimes_for(opset: int) -> tuple[str, ...]:
    """The runtimes to ask, in this order.

    The reference evaluator runs some operators as if the opset were 13, Softmax for one.
    """
    return (ORT, REFERENCE) if opset >= OLDEST_OF_REFERENCE else (ORT,)


def _by_ort(model: onnx.ModelProto) -> Evaluate:
    model = _as_older(model)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    providers = ["CPUExecutionProvider"]
    session = ort.InferenceSession(model.SerializeToString(), options, providers=providers)
    return lambda feeds: session.run(None, feeds)


def _as_older(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model at the newest opset of ONNX Runtime, if its operators were the same then."""
    older = onnx.ModelProto()
    older.CopyFrom(model)
    for body in (older, *older.functions):
        for imported in body.opset_import:
            if not imported.domain and imported.version > NEWEST_OF_ORT:
                _check_unchanged(model, imported.version)
                imported.version = NEWEST_OF_ORT
    older.ir_version = min(older.ir_version, NEWEST_IR_OF_ORT)
    return older


def nodes_of(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """All nodes, those of bodies and functions among them."""
    nodes = [*model.graph.node, *(node for made in model.functions for node in made.node)]
    while nodes:
        node = nodes.pop()
        yield node
        nodes.extend(inner for attribute in node.attribute for inner in attribute.g.node)


def _check_unchanged(model: onnx.ModelProto, version: int) -> None:
    for node in nodes_of(model):
        schemas = [schema_of(node.op_type, at, node.domain) for at in (version, NEWEST_OF_ORT)]
        since = [schema and schema.since_version for schema in schemas]
        if not node.domain and since[0] != since[1]:
            raise NotRunError(f"{node.op_type} has changed since opset {NEWEST_OF_ORT}")


def _by_reference(model: onnx.ModelProto) -> Evaluate:
    evaluator = Reference(model)

    def evaluate(feeds: dict[str, Any]) -> Sequence[Any]:
        with np.errstate(all="ignore"), warnings.catch_warnings(), _quiet():
            warnings.simplefilter("ignore")
            return list(evaluator.run(None, feeds))

    return evaluate


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
    if _is_nothing(one, other):
        return None
    if one.shape != other.shape or (one.dtype != other.dtype and one.dtype.kind not in "OU"):
        return f"{one.dtype}{list(one.shape)} became {other.dtype}{list(other.shape)}"
    is_equal = one == other if is_exact or one.dtype not in TOLERANCE else _close(one, other)
    if one.dtype.kind not in "iubOSU":
        is_equal = is_equal | (_is_nan(one) & _is_nan(other))
    if np.all(is_equal):
        return None
    at = tuple(np.argwhere(~np.asarray(is_equal))[0].tolist())
    return f"at {list(at)} {one[at]} became {other[at]}"


def _is_nan(array: Array) -> Any:
    """Also of floats that numpy does not know, of 16 and 8 bits."""
    return np.isnan(array.astype(np.float64))


def _is_nothing(one: Array, other: Array) -> bool:
    """Whether both have no element, and lengths that differ are 0 in the second.

    Of a Loop without rounds ONNX Runtime gives the lengths that its body claims, 0 for others.
    """
    if one.size or other.size or one.dtype != other.dtype or one.ndim != other.ndim:
        return False
    return all(n in (0, m) for m, n in zip(one.shape, other.shape, strict=True))


def _close(one: Array, other: Array) -> Any:
    finite = np.abs(one[np.isfinite(one)]).astype(np.float64)
    scale = TOLERANCE[one.dtype] * max(1.0, finite.max(initial=0.0))
    with np.errstate(all="ignore"):
        away = np.abs(one.astype(np.float64) - other.astype(np.float64))
        return (away <= scale) | (one == other) | (np.abs(one) > LARGEST)
