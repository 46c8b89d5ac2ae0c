"""Views of constants and the arithmetic of shapes, evaluated at compile time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.editing.permuted import tensor_of
from relayout.graph.read import Shape, constant_of, is_op, shape_of
from relayout.graph.region import subgraphs_of
from relayout.layout.transport import Array
from relayout.ops.facts import Evaluation
from relayout.ops.measure import item_bytes
from relayout.ops.registry import FACTS, facts_of
from relayout.rewrite.worklist import consumers

if TYPE_CHECKING:
    from onnx.reference import ReferenceEvaluator

SMALL_BYTES = 1 << 20
"""A constant up to this size may be made though it is larger than what it is made from."""

MOST_GROWTH = 1 << 26
"""So many bytes all that is folded in a graph may take beyond what it is made from."""

GROWTH = "relayout.growth"
"""The key under which a graph carries how many bytes that are by now."""

ROUNDED_TYPES = frozenset((ir.DataType.FLOAT, ir.DataType.DOUBLE))
"""Narrower floats are computed in wider ones by some runtimes, and rounded twice."""

SHAPE_BYTES = 1 << 13
"""Shapes, axes and the like are smaller than this."""

REDUCTION = "reduction"
"""By this attribute some operators that place elements add them up instead."""


@dataclass(frozen=True, slots=True)
class FoldConstants:
    """What is computed from constants alone, by moving elements or by exact integer arithmetic.

    Scales are computed too: one float by a step that every machine rounds alike; and floats that
    come out without rounding, such as masks. Weights stay as they are given.

    Given:  s = Shape(x); t = Gather(s, 0); x of shape [2,3]
    Result: t is the constant 2

    A Transpose has its own rewrite, which moves the data only when it is written.
    """

    name: str = "fold constants"
    op_types: tuple[str, ...] = tuple(
        op_type
        for (domain, op_type), facts in FACTS.items()
        if not domain and facts.numbers.evaluation is not None and op_type != "Transpose"
    )

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        if not _may_be_known(node) or not _may_fold(node):
            return None
        result, notes = node.outputs[0], editor.region.graph.meta
        growth = notes.get(GROWTH, 0) + max(0, (_bytes(result) or 0) - _freed_bytes(node))
        if growth > MOST_GROWTH:
            return None
        array = _known(node, editor)
        if array is None:
            return None
        notes[GROWTH] = growth
        tensor = tensor_of(array, result.dtype)
        touched = consumers(result)
        constant = editor.constant(tensor, hint=f"{result.name}_folded", before=node)
        editor.substitute(result, constant, origin=node)
        editor.discard(node)
        return touched


def _may_be_known(node: ir.Node) -> bool:
    """Whether all operands are constants, or the shape of one may be enough."""
    if node.op_type in {"Shape", "Gather"}:
        return True
    return all(value is None or constant_of(value) is not None for value in node.inputs)


def _known(node: ir.Node, editor: Editor) -> Array | None:
    """The result of a node, where it can be computed now."""
    if is_op(node, "Shape"):
        return _static_shape(node)
    result = _evaluated(node, editor)
    return _picked_lengths(node) if result is None and is_op(node, "Gather") else result


def _picked_lengths(node: ir.Node) -> Array | None:
    """The lengths a Gather picks from a shape of which only some are known."""
    data, picked = node.inputs[0], constant_of(node.inputs[1])
    producer = None if data is None else data.producer()
    if producer is None or picked is None or not is_op(producer, "Shape"):
        return None
    lengths = _lengths(producer)
    if lengths is None or picked.nbytes > SHAPE_BYTES:
        return None
    places = picked.numpy()
    if any(not -len(lengths) <= place < len(lengths) for place in places.reshape(-1).tolist()):
        return None
    known = [lengths[place] for place in places.reshape(-1).tolist()]
    if not all(isinstance(length, int) for length in known):
        return None
    return np.asarray(known, np.int64).reshape(places.shape)


def _lengths(node: ir.Node) -> Shape | None:
    """What a Shape node gives, as far as it is known."""
    shape = shape_of(node.inputs[0])
    if shape is None:
        return None
    start = node.attributes.get_int("start", 0)
    return shape[slice(start, node.attributes.get_int("end", len(shape)))]


def _may_fold(node: ir.Node) -> bool:
    result = node.outputs[0]
    if len(node.outputs) != 1 or result.dtype is None or result.is_graph_output():
        return False
    if any(attribute.is_ref() for attribute in node.attributes.values()) or any(subgraphs_of(node)):
        return False
    size = _bytes(result)
    if size is None:
        return False
    if node.attributes.get_string(REDUCTION, "none") != "none":
        return False
    return size <= max(SMALL_BYTES, _freed_bytes(node))


def _is_exact(dtype: ir.DataType) -> bool:
    return dtype.is_integer() or dtype == ir.DataType.BOOL


def _is_one_float(value: ir.Value) -> bool:
    """Whether a value is one number, such as a scale, of a type in which all machines round alike.

    Longer ones may be weights.
    """
    return value.dtype in ROUNDED_TYPES and _bytes(value) == item_bytes(value.dtype)


def _freed_bytes(node: ir.Node) -> int:
    """The size of the constants that nothing else reads."""
    alone = [value for value in node.inputs if value is not None and len(value.uses()) == 1]
    return sum(_bytes(value) or 0 for value in alone)


def _bytes(value: ir.Value) -> int | None:
    shape = shape_of(value)
    if shape is None or value.dtype is None:
        return None
    lengths = [length for length in shape if isinstance(length, int)]
    if len(lengths) < len(shape):
        return None
    return math.ceil(math.prod(lengths) * item_bytes(value.dtype))


def _static_shape(node: ir.Node) -> Array | None:
    lengths = _lengths(node)
    if lengths is None or not all(isinstance(length, int) for length in lengths):
        return None
    return np.asarray(lengths, np.int64)


def _evaluated(node: ir.Node, editor: Editor) -> Array | None:
    tensors = [constant_of(value) for value in node.inputs]
    given = [
        tensor is not None or value is None
        for tensor, value in zip(tensors, node.inputs, strict=True)
    ]
    if not tensors or not all(given):
        return None
    feeds = {
        f"x{index}": tensor.numpy() for index, tensor in enumerate(tensors) if tensor is not None
    }
    is_natural = facts_of(node).numbers.evaluation is Evaluation.NATURALS
    integers = [array for array in feeds.values() if array.dtype.kind == "i"]
    if is_natural and any((array < 0).any() for array in integers):
        return None
    try:
        evaluator = _evaluator(_alone(node, editor.region.version))
        array = _result(evaluator, feeds)
        if _stays(node) and not _is_unrounded(array, evaluator, feeds):
            return None
    except (ValueError, IndexError, ZeroDivisionError, NotImplementedError, TypeError):
        # Nothing evaluates it here, or the operands do not fit together: then the error that the
        # runtime reports must stay.
        return None
    return array


def _result(evaluator: ReferenceEvaluator, feeds: Mapping[str, Array]) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(next(iter(evaluator.run(None, dict(feeds), attributes={}))))


def _stays(node: ir.Node) -> bool:
    """Whether a result may be weights that were computed, which stay unless nothing was rounded."""
    result = node.outputs[0]
    is_moved = facts_of(node).numbers.evaluation is Evaluation.MOVES
    is_exact = result.dtype is not None and _is_exact(result.dtype)
    return not (is_moved or is_exact or _is_one_float(result))


def _is_unrounded(array: Array, evaluator: ReferenceEvaluator, feeds: Mapping[str, Array]) -> bool:
    """Whether floats are the same when they are computed in more digits."""
    if array.dtype not in (np.float16, np.float32):
        return False
    wider = {
        name: fed.astype(np.float64) if fed.dtype.kind == "f" else fed
        for name, fed in feeds.items()
    }
    return bool(np.isfinite(array).all()) and np.array_equal(array, _result(evaluator, wider))


@lru_cache(maxsize=1024)
def _evaluator(function: bytes) -> ReferenceEvaluator:
    """What evaluates a node; the arithmetic of shapes has few forms, so most are met again."""
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(onnx.FunctionProto.FromString(function))


def _alone(node: ir.Node, version: int) -> bytes:
    """The node as a function of its operands, without names."""
    names = ["" if value is None else f"x{index}" for index, value in enumerate(node.inputs)]
    alone = onnx.NodeProto(op_type=node.op_type, domain=node.domain, input=names, output=["y"])
    alone.attribute.extend(map(ir.serde.serialize_attribute, node.attributes.values()))
    _sort_axes(alone, len(shape_of(node.inputs[0]) or ()))
    opset = onnx.helper.make_opsetid("", version)
    given = [name for name in names if name]
    function = onnx.helper.make_function("relayout", "folded", given, ["y"], [alone], [opset])
    return bytes(function.SerializeToString(deterministic=True))


def _sort_axes(alone: onnx.NodeProto, rank: int) -> None:
    """Put axes of views in order, which means nothing; the evaluator takes them one by one."""
    if alone.op_type not in {"Squeeze", "Unsqueeze"}:
        return
    for attribute in alone.attribute:
        whole = rank + len(attribute.ints) if alone.op_type == "Unsqueeze" else rank
        attribute.ints[:] = sorted(axis % whole for axis in attribute.ints)
