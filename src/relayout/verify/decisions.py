"""Operators that decide: a rounding error in what they read may change what they give altogether.

For each, which other results are as good as the one it gave, if each number that it read may be
off by a slack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

from relayout.verify.quantisers import nodes_of

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Alternative:
    """A node that decides, what it read, the slack of that, its result, and another one."""

    node: onnx.NodeProto
    operands: Sequence[Array]
    slack: Sequence[Array]
    own: Array
    other: Array


Accepts: TypeAlias = Callable[[Alternative], Array]
"""Which elements of the other result are as good."""

WHOLE = frozenset(
    (
        *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64),
        *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
    )
)


def decides(node: onnx.NodeProto) -> bool:
    """Whether a node turns floats into a choice; what reads whole numbers does so without slack."""
    if node.domain not in ("", "ai.onnx") or node.op_type not in ACCEPTS:
        return False
    return node.op_type != "Cast" or _number(node, "to", 0) in (*WHOLE, TensorProto.BOOL)


def decisive(model: onnx.ModelProto) -> set[str]:
    """The results of all nodes of a model that decide or compute in whole numbers."""
    functions = (node for function in model.functions for node in function.node)
    return {
        node.output[decided(node)] if decides(node) else node.output[0]
        for node in (*nodes_of(model.graph), *functions)
        if (decides(node) and len(node.output) > decided(node)) or node.op_type in OPAQUE
    }


OPAQUE = frozenset(("ConvInteger", "DynamicQuantizeLinear", "MatMulInteger", "Unique", "NonZero"))
"""Operators that decide in ways that are not replayed."""


def decided(node: onnx.NodeProto) -> int:
    """Which result of a node is the choice."""
    return 1 if node.op_type == "TopK" else 0


def accepted(choice: Alternative) -> bool:
    """Whether another choice is as good as a node's own one."""
    own, other = choice.own, choice.other
    if own.dtype != other.dtype or (own.size and own.shape[1:] != other.shape[1:]):
        return False
    if choice.node.op_type != "NonMaxSuppression" and own.shape != other.shape:
        return False
    if np.array_equal(own, other):
        return True
    return bool(np.all(ACCEPTS[choice.node.op_type](choice)))


def _chosen(choice: Alternative) -> Array:
    """Another index is as good if the elements at both are equal but for the slack."""
    values, own, other = choice.operands[0], choice.own, choice.other
    axis = _axis(choice.node, values.ndim)
    if not _number(choice.node, "keepdims", 1) and choice.node.op_type != "TopK":
        own, other = np.expand_dims(own, axis), np.expand_dims(other, axis)
    length = values.shape[axis]
    inside = (other >= 0) & (other < length)
    other = np.clip(other, 0, max(length - 1, 0))
    here, there = (_wide(np.take_along_axis(values, index, axis)) for index in (own, other))
    room = [np.take_along_axis(choice.slack[0], index, axis) for index in (own, other)]
    return np.asarray(inside & (np.abs(here - there) <= room[0] + room[1]))


def _hard(choice: Alternative) -> Array:
    """Ones at other places are as good as other indexes are."""
    axis = _axis(choice.node, choice.own.ndim, usual=-1)
    ones = np.asarray(choice.other.sum(axis=axis, keepdims=True) == 1)
    own, other = (np.argmax(array, axis, keepdims=True) for array in (choice.own, choice.other))
    like = helper.make_node("ArgMax", ["x"], ["y"], axis=axis)
    return ones & _chosen(replace(choice, node=like, own=own, other=other))


def _compared(choice: Alternative) -> Array:
    """A comparison may come out otherwise if its operands are equal but for the slack."""
    left, right = (_wide(operand) for operand in choice.operands[:2])
    with np.errstate(invalid="ignore"):
        near = np.abs(left - right) <= choice.slack[0] + choice.slack[1]
    return np.asarray((choice.own == choice.other) | near)


def _monotone(function: Callable[[Array], Array]) -> Accepts:
    """Of a function that never falls, all results between those at both ends of the slack."""

    def accepts(choice: Alternative) -> Array:
        value, new = _wide(choice.operands[0]), _wide(choice.other)
        low, high = function(value - choice.slack[0]), function(value + choice.slack[0])
        return np.asarray((choice.own == choice.other) | ((low <= new) & (new <= high)))

    return accepts


def _cast(choice: Alternative) -> Array:
    if _number(choice.node, "to", 0) != TensorProto.BOOL:
        return _monotone(np.trunc)(choice)
    near = np.abs(_wide(choice.operands[0])) <= choice.slack[0]
    return np.asarray((choice.own == choice.other) | near)


def _quantised(choice: Alternative) -> Array:
    """The steps between those at both ends of the slack."""
    value, *grid = (_wide(operand) for operand in choice.operands)
    axis = _axis(choice.node, value.ndim, usual=1)
    scale, *zero = (_along(array, axis, value.ndim) for array in grid)
    limits = np.iinfo(choice.own.dtype)
    low, high = (
        np.clip(np.rint(end / scale) + sum(zero), limits.min, limits.max)
        for end in (value - choice.slack[0], value + choice.slack[0])
    )
    return np.asarray((low <= choice.other) & (choice.other <= high))


def _selected(choice: Alternative) -> Array:
    """Boxes that are kept for some operands within the slack, and all that are for each of them."""
    session = _session(choice.node)
    rng = np.random.default_rng(0)
    kept = [_rows(choice.own)]
    for _ in range(SELECTIONS):
        moved = [
            (array + rng.uniform(-1, 1, array.shape) * room).astype(array.dtype)
            for array, room in zip(choice.operands[:2], choice.slack[:2], strict=True)
        ]
        given = zip(session.get_inputs(), (*moved, *choice.operands[2:]), strict=True)
        kept.append(_rows(session.run(None, {port.name: array for port, array in given})[0]))
    found = _rows(choice.other)
    return np.asarray(set.intersection(*kept) <= found <= set.union(*kept))


def _wide(array: Array) -> Array:
    return array.astype(np.float64)


SELECTIONS = 16


def _session(node: onnx.NodeProto) -> Any:
    import onnxruntime  # noqa: PLC0415 - only where boxes are selected

    names = [f"i{k}" for k, name in enumerate(node.input) if name]
    types = (TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.INT64, *[TensorProto.FLOAT] * 2)
    kinds = [kind for kind, name in zip(types, node.input, strict=False) if name]
    places = iter(names)
    alone = onnx.NodeProto()
    alone.CopyFrom(node)
    alone.input[:] = [next(places) if name else "" for name in node.input]
    alone.output[:] = ["kept"]
    graph = helper.make_graph(
        [alone],
        "alone",
        [helper.make_tensor_value_info(*port, None) for port in zip(names, kinds, strict=True)],
        [helper.make_tensor_value_info("kept", TensorProto.INT64, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def _rows(array: Array) -> set[tuple[int, ...]]:
    return {tuple(map(int, row)) for row in array}


def _along(array: Array, axis: int, rank: int) -> Array:
    """An array of one number, or of one for each place along an axis."""
    if array.size <= 1:
        return array
    return array.reshape([-1 if i == axis else 1 for i in range(rank)])


def _number(node: onnx.NodeProto, name: str, usual: int) -> int:
    return next((one.i for one in node.attribute if one.name == name), usual)


def _axis(node: onnx.NodeProto, rank: int, usual: int | None = None) -> int:
    by_op = {"TopK": -1}.get(node.op_type, 0)
    return _number(node, "axis", by_op if usual is None else usual) % max(rank, 1)


ACCEPTS: dict[str, Accepts] = {
    **dict.fromkeys(("ArgMax", "ArgMin", "TopK"), _chosen),
    **dict.fromkeys(("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"), _compared),
    "Cast": _cast,
    "Ceil": _monotone(np.ceil),
    "Floor": _monotone(np.floor),
    "Hardmax": _hard,
    "NonMaxSuppression": _selected,
    "QuantizeLinear": _quantised,
    "Round": _monotone(np.rint),
    "Sign": _monotone(np.sign),
}
