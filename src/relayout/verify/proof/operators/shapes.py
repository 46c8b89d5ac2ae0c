"""Views, and the arithmetic on shapes that steers them."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from relayout.verify.proof.call import NodeCall, Rule
from relayout.verify.proof.constants import of_data
from relayout.verify.proof.lengths import (
    Length,
    floor,
    minus,
    nonnegative,
    product,
    quotient,
    times,
)
from relayout.verify.proof.pieces import free
from relayout.verify.proof.table import Data, NotKnownError, TermValue
from relayout.verify.proof.views import expanded, reshaped, squeezed, transposed, unsqueezed


def _transpose(call: NodeCall) -> list[TermValue]:
    value = call.operand(0)
    perm = call.attribute("perm", tuple(reversed(range(value.rank))))
    return [transposed(value, perm)]


def _reshape(call: NodeCall) -> list[TermValue]:
    value, wanted = call.operand(0), call.lengths(1, "shape")
    assert wanted is not None
    shape = value.shape
    lengths: list[Length] = list(wanted)
    if not all(n == -1 or nonnegative(n) or n in call.table.lengths for n in lengths):
        raise NotKnownError("a Reshape to numbers that only a run tells")
    if not call.attribute("allowzero", 0):
        lengths = [shape[i] if n == 0 else n for i, n in enumerate(lengths)]
    if -1 in lengths:
        place = lengths.index(-1)
        others = product([n for i, n in enumerate(lengths) if i != place])
        rest = quotient(product(list(shape)), others)
        if rest is None:
            raise NotKnownError("a Reshape whose -1 is not known")
        lengths[place] = rest
    return [reshaped(call.table, value, lengths)]


def _flatten(call: NodeCall) -> list[TermValue]:
    value = call.operand(0)
    axis = int(call.attribute("axis", 1))
    axis = axis + value.rank if axis < 0 else axis
    shape = list(value.shape)
    return [reshaped(call.table, value, [product(shape[:axis]), product(shape[axis:])])]


def _squeeze(call: NodeCall) -> list[TermValue]:
    return [squeezed(call.table, call.operand(0), call.numbers(1, "axes"))]


def _unsqueeze(call: NodeCall) -> list[TermValue]:
    axes = call.numbers(1, "axes")
    assert axes is not None
    return [unsqueezed(call.operand(0), axes)]


def _expand(call: NodeCall) -> list[TermValue]:
    lengths = call.lengths(1)
    assert lengths is not None
    return [expanded(call.table, call.operand(0), lengths)]


def _tile(call: NodeCall) -> list[TermValue]:
    value, repeats = call.operand(0), call.lengths(1)
    assert repeats is not None
    pairs = zip(value.known_dims, repeats, strict=True)
    return [value.with_dims([(*free(count), *dim) for dim, count in pairs]).without_data()]


def _shape(call: NodeCall) -> list[TermValue]:
    lengths = call.operand(0).shape
    start, end = call.attribute("start", 0), call.attribute("end", len(lengths))
    lengths = lengths[start:end]
    call.table.lengths |= set(lengths)
    return [of_data(call.table, Data("int64", lengths), (len(lengths),))]


def _size(call: NodeCall) -> list[TermValue]:
    return [of_data(call.table, Data("int64", (product(list(call.operand(0).shape)),)), ())]


def _constant(call: NodeCall) -> list[TermValue]:
    given = call.node.attribute[0]
    call.disregard(given.name)
    kinds = {"value_int": "int64", "value_ints": "int64"}
    kinds |= {"value_float": "float32", "value_floats": "float32"}
    if given.name == "value":
        return [call.constant(numpy_helper.to_array(given.t))]
    if given.name in kinds:
        return [call.constant(np.array(call.attribute(given.name), kinds[given.name]))]
    raise NotKnownError(f"Constant by {given.name}")


def _constant_of_shape(call: NodeCall) -> list[TermValue]:
    lengths, given = call.lengths(0), call.attribute("value")
    assert lengths is not None
    array = np.zeros(1, np.float32) if given is None else numpy_helper.to_array(given)
    one = call.constant(array.reshape(()))
    data = one.data
    if data is not None and len(lengths) == 1 and isinstance(lengths[0], int) and lengths[0] <= 64:
        return [of_data(call.table, Data(data.kind, data.elements * lengths[0]), lengths)]
    return [TermValue(one.term, tuple(free(n) for n in lengths))]


def _range(call: NodeCall) -> list[TermValue]:
    bounds = [call.operand(i).data for i in range(3)]
    known = [data.elements[0] for data in bounds if data is not None]
    if len(known) < 3 or known[2] != 1 or bounds[0] is None:
        raise NotKnownError("Range by numbers that only a run tells")
    return [counted(call, known[0], minus(known[1], known[0]), bounds[0].kind)]


def counted(call: NodeCall, start: Length, length: Length, kind: str = "int64") -> TermValue:
    """A vector of whole numbers that follow each other."""
    if isinstance(length, int) and isinstance(start, int):
        return call.constant(np.arange(start, start + max(length, 0), dtype=kind))
    term = call.table.term("range", kind, start)
    return TermValue(term, (call.table.axis(length, "range", length),))


def _depth_to_space(call: NodeCall) -> list[TermValue]:
    value, block = call.operand(0), int(call.attribute("blocksize"))
    n, c, h, w = value.shape
    inner = quotient(c, block * block)
    if inner is None:
        raise NotKnownError("DepthToSpace of an open number of channels")
    crd = call.text("mode", "DCR") == "CRD"
    split = [n, inner, block, block, h, w] if crd else [n, block, block, inner, h, w]
    perm = (0, 1, 4, 2, 5, 3) if crd else (0, 3, 4, 1, 5, 2)
    moved = transposed(reshaped(call.table, value, split), perm)
    return [reshaped(call.table, moved, [n, inner, times(h, block), times(w, block)])]


def _space_to_depth(call: NodeCall) -> list[TermValue]:
    value, block = call.operand(0), int(call.attribute("blocksize"))
    n, c, h, w = value.shape
    rows, columns = floor(h, block), floor(w, block)
    split = reshaped(call.table, value, [n, c, rows, block, columns, block])
    moved = transposed(split, (0, 3, 5, 1, 2, 4))
    return [reshaped(call.table, moved, [n, times(c, block * block), rows, columns])]


RULES: dict[tuple[str, str], Rule] = {
    ("", "Transpose"): _transpose,
    ("", "Reshape"): _reshape,
    ("", "Flatten"): _flatten,
    ("", "Squeeze"): _squeeze,
    ("", "Unsqueeze"): _unsqueeze,
    ("", "Expand"): _expand,
    ("", "Tile"): _tile,
    ("", "Shape"): _shape,
    ("", "Size"): _size,
    ("", "Constant"): _constant,
    ("", "ConstantOfShape"): _constant_of_shape,
    ("", "Range"): _range,
    ("", "DepthToSpace"): _depth_to_space,
    ("", "SpaceToDepth"): _space_to_depth,
}
