"""Operators that only change how elements are arranged."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from relayout.backends.torch.lower.axes import normal, parameter, parameter_text
from relayout.backends.torch.program.call import Call, Lowering, PythonExpression
from relayout.backends.torch.program.scalars import Host, Scalar, known
from relayout.backends.torch.runtime import views as runtime
from relayout.layout.permutation import axis_among


def reshape(call: Call) -> PythonExpression:
    shape = call.ints("shape")
    target = None if shape is None else Host(tuple(map(known, shape)), 1, ir.DataType.INT64)
    target = target or call.numbers(1)
    if target is None:
        copied = call.integer("allowzero", 0) == 0
        return call.helper(runtime.reshape, call.tensor(0), call.list_text(1), copied)
    host = call.numbers(0)
    if host is not None and len(host.items) == 1 and target.values in {(), (1,), (-1,)}:
        return Host(host.items, len(target.items), host.dtype)
    if host is not None and host.rank == 1 and target.values == (-1,):
        return host
    lengths = [
        _copied(call, axis) if item.value == 0 and not call.integer("allowzero", 0) else item.text
        for axis, item in enumerate(target.items)
    ]
    return f"{call.tensor(0)}.reshape({', '.join(lengths) or '()'})"


def _copied(call: Call, axis: int) -> str:
    return dim(call, axis).text


def dim(call: Call, axis: int, index: int = 0) -> Scalar:
    """A length of an operand, as a number where it is known.

    What bodies of control flow declare about their shapes need not be true of every run.
    """
    shape = call.shape(index)
    length = None if shape is None else shape[axis_among(axis, len(shape))]
    if isinstance(length, int) and call.scope.parent is None:
        return known(length)
    return Scalar(f"{call.tensor(index)}.shape[{axis}]")


def transpose(call: Call) -> PythonExpression:
    host = call.numbers(0)
    if host is not None:
        return host
    order = call.ints("perm")
    rank = call.rank(0)
    if order is None and rank is None:
        return f"{call.tensor(0)}.permute(*range({call.tensor(0)}.dim() - 1, -1, -1))"
    axes = order or tuple(reversed(range(rank or 0)))
    if list(axes) == sorted(axes):
        return call.tensor(0)
    return f"{call.tensor(0)}.permute({', '.join(map(str, axes))})"


def squeeze(call: Call) -> PythonExpression:
    host = call.numbers(0)
    if host is not None and len(host.items) == 1:
        return Host(host.items, 0, host.dtype)
    axes = parameter(call, "axes", 1)
    if axes is None:
        text = parameter_text(call, "axes", 1, "")
        return f"{call.tensor(0)}.squeeze({f'tuple(dict.fromkeys({text}))' if text else ''})"
    return f"{call.tensor(0)}.squeeze({axes[0] if len(axes) == 1 else axes})"


def unsqueeze(call: Call) -> PythonExpression:
    axes = parameter(call, "axes", 1)
    host = call.numbers(0)
    if host is not None and host.rank == 0 and axes is not None and len(axes) == 1:
        return Host(host.items, 1, host.dtype)
    rank = call.rank(0)
    if axes is None or (rank is None and min(axes) < 0 and len(axes) > 1):
        return call.helper(runtime.unsqueeze, call.tensor(0), parameter_text(call, "axes", 1))
    if rank is not None:
        axes = tuple(normal(axis, rank + len(axes)) for axis in axes)
    return call.tensor(0) + "".join(f".unsqueeze({axis})" for axis in sorted(axes))


def flatten(call: Call) -> str:
    axis, rank, text = call.integer("axis", 1), call.rank(0), call.tensor(0)
    if rank is None:
        return call.helper(runtime.flatten, text, axis)
    axis = normal(axis, rank)
    if axis == 0:
        return f"{text}.reshape(1, -1)"
    if axis == rank:
        return f"{text}.reshape(-1, 1)"
    if axis == 1:
        return f"{text}.flatten(1)"
    return f"{text}.flatten({axis}).flatten(0, {axis - 1})"


def expand(call: Call) -> str:
    target, shape = call.numbers(1), call.shape(0)
    if target is None or target.values is None or shape is None or len(shape) > len(target.items):
        return call.helper(runtime.expand, call.tensor(0), call.list_text(1))
    lead = len(target.items) - len(shape)
    lengths = [
        -1 if value == 1 and axis >= lead else int(value)
        for axis, value in enumerate(target.values)
    ]
    return f"{call.tensor(0)}.expand({', '.join(map(str, lengths)) or '()'})"


def shape(call: Call) -> PythonExpression:
    given = call.numbers(0)
    rank = call.rank(0) if given is None else given.rank
    start, end = call.integer("start", 0), call.view.node.attributes.get("end")
    span = slice(start, None if end is None else end.as_int())
    if given is not None:
        lengths = (known(len(given.items)),)[: given.rank][span]
        return Host(lengths, 1, ir.DataType.INT64)
    if rank is None:
        first, last = span.start or "", "" if span.stop is None else span.stop
        text = f"list({call.tensor(0)}.shape[{first}:{last}])"
        return f"torch.tensor({text}, dtype=torch.int64, device=w.device)"
    axes = range(rank)[span]
    return Host(tuple(dim(call, axis) for axis in axes), 1, ir.DataType.INT64)


def size(call: Call) -> PythonExpression:
    given = call.shape(0)
    is_static = given is not None and call.scope.parent is None
    lengths = [length for length in given or () if isinstance(length, int)]
    if is_static and given is not None and len(lengths) == len(given):
        return Host((known(math.prod(lengths)),), 0, ir.DataType.INT64)
    return Host((Scalar(f"{call.tensor(0)}.numel()"),), 0, ir.DataType.INT64)


def tile(call: Call) -> str:
    repeats = call.known_ints(1)
    if repeats is None:
        return f"{call.tensor(0)}.tile(tuple({call.list_text(1)}))"
    return f"{call.tensor(0)}.tile({_tuple(repeats)})"


def _tuple(values: Sequence[int]) -> str:
    return repr(tuple(values))


def depth_to_space(call: Call) -> str:
    block = call.integer("blocksize", 1)
    if call.string("mode", "DCR") == "CRD":
        return f"F.pixel_shuffle({call.tensor(0)}, {block})"
    return call.helper(runtime.depth_to_space, call.tensor(0), block)


def space_to_depth(call: Call) -> str:
    block = call.integer("blocksize", 1)
    if call.string("mode", "DCR") == "CRD":
        return f"F.pixel_unshuffle({call.tensor(0)}, {block})"
    return call.helper(runtime.space_to_depth, call.tensor(0), block)


LOWERINGS: dict[str, Lowering] = {
    "Reshape": reshape,
    "Transpose": transpose,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Flatten": flatten,
    "Expand": expand,
    "Shape": shape,
    "Size": size,
    "Tile": tile,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
}
