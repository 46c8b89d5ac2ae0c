"""Operators that pick elements by their indices."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from relayout.backends.torch.lower.axes import normal, parameter, parameter_text
from relayout.backends.torch.lower.views import dim
from relayout.backends.torch.program.call import Call, Lowering, PythonExpression, Results, Several
from relayout.backends.torch.program.dtypes import UNSIGNED
from relayout.backends.torch.program.scalars import Host, Scalar
from relayout.backends.torch.runtime import indexing as runtime


def gather(call: Call) -> PythonExpression:
    axis, picked = call.integer("axis", 0), call.numbers(1)
    host = call.numbers(0)
    if host is not None and picked is not None and picked.values is not None:
        items = tuple(host.items[int(value)] for value in picked.values)
        return Host(items, picked.rank, host.dtype)
    if picked is not None and picked.rank == 0:
        return f"{call.tensor(0)}.select({axis}, {picked.items[0].text})"
    indices = call.constant(1)
    is_vector = indices is not None and indices.ndim == 1
    # Wide unsigned numbers can be indexed, and not selected.
    may_select = is_vector and call.dtype(0) not in UNSIGNED
    if indices is not None and may_select and min(indices.tolist(), default=0) >= 0:
        return f"{call.tensor(0)}.index_select({axis}, {call.tensor(1)})"
    rank = call.rank(0)
    if rank is None and axis < 0:
        return call.helper(runtime.gather, call.tensor(0), call.tensor(1), axis)
    lead = ":, " * (axis if rank is None else normal(axis, rank))
    return f"{call.tensor(0)}[{lead}{call.tensor(1)}]"


def slice_(call: Call) -> PythonExpression:
    span = _slices(call)
    if span is None:
        arguments = [
            parameter_text(call, name, index)
            for index, name in enumerate(("starts", "ends", "axes", "steps"), 1)
        ]
        return call.helper(runtime.slice_by, call.tensor(0), *arguments)
    host = call.numbers(0)
    if host is not None and 0 in span and all(_is_known(part) for part in span[0]):
        first, last, step = (
            None if part is None or part.value is None else int(part.value) for part in span[0]
        )
        items = host.items[first:last:step]
        return Host(items, 1, host.dtype)
    last = max(span, default=-1)
    parts = [_slice_text(*span[axis]) if axis in span else ":" for axis in range(last + 1)]
    return f"{call.tensor(0)}[{', '.join(parts)}]" if parts else call.tensor(0)


_Part = tuple[Scalar | None, Scalar | None, Scalar | None]


def _is_known(part: Scalar | None) -> bool:
    return part is None or part.value is not None


def _slices(call: Call) -> dict[int, _Part] | None:
    """By axis where a slice starts, ends and how it steps; None if known only at run time."""
    names = ("starts", "ends", "axes", "steps")
    lists = [_numbers(call, name, index) for index, name in enumerate(names, 1)]
    starts, ends, axes, steps = lists
    if any(_is_fed(call, name, index) for index, name in enumerate(names, 1)):
        return None
    if starts is None or ends is None:
        return None
    axes = axes or Host(tuple(Scalar(str(i), i) for i in range(len(starts.items))), 1, starts.dtype)
    steps = steps or Host((Scalar("1", 1),) * len(starts.items), 1, starts.dtype)
    rank = call.rank(0)
    if axes.values is None or steps.values is None or min(steps.values, default=1) < 0:
        return None
    if rank is None and min(axes.values, default=0) < 0:
        return None
    return {
        normal(int(axis), rank or 0): (_start(first), _end(last), None if step == 1 else by)
        for axis, first, last, by, step in zip(
            axes.values, starts.items, ends.items, steps.items, steps.values, strict=True
        )
    }


def _is_fed(call: Call, name: str, index: int) -> bool:
    """Whether a parameter is there, but known only when the model runs."""
    is_operand = name not in call.view.node.attributes and call.has(index)
    return is_operand and call.numbers(index) is None


def _numbers(call: Call, name: str, index: int) -> Host | None:
    attribute = parameter(call, name, index) if name in call.view.node.attributes else None
    if attribute is not None:
        return Host(tuple(Scalar(str(i), i) for i in attribute), 1, ir.DataType.INT64)
    return call.numbers(index) if call.has(index) else None


def _start(item: Scalar) -> Scalar | None:
    return None if item.value == 0 else item


def _end(item: Scalar) -> Scalar | None:
    """Exporters write the largest number there is for "to the end"."""
    is_open = item.value is not None and item.value >= np.iinfo(np.int32).max
    return None if is_open else item


def _slice_text(start: Scalar | None, end: Scalar | None, step: Scalar | None) -> str:
    text = ":".join("" if part is None else part.text for part in (start, end))
    return text if step is None else f"{text}:{step.text}"


def split(call: Call) -> Results:
    axis, count = call.integer("axis", 0), call.results
    sizes = parameter(call, "split", 1)
    host = call.numbers(0)
    if sizes is None and not call.has(1):
        whole = dim(call, axis).value if call.rank(0) is not None else None
        sizes = None if whole is None else _even(int(whole), count)
    if host is not None and sizes is not None:
        ends = np.cumsum(sizes).tolist()
        return tuple(
            Host(host.items[end - length : end], 1, host.dtype)
            for end, length in zip(ends, sizes, strict=True)
        )
    if sizes is not None and len(set(sizes)) == 1 and sizes[0]:
        return Several(f"{call.tensor(0)}.split({sizes[0]}, {axis})", count)
    if sizes is not None or call.has(1):
        text = parameter_text(call, "split", 1) if sizes is None else repr(list(sizes))
        return Several(f"{call.tensor(0)}.split({text}, {axis})", count)
    return Several(call.helper(runtime.split_evenly, call.tensor(0), count, axis), count)


def _even(whole: int, count: int) -> tuple[int, ...]:
    """The parts are as long as the first, but for the last."""
    length = -(-whole // count)
    return (*(length,) * (count - 1), whole - length * (count - 1))


def concat(call: Call) -> PythonExpression:
    hosts = [call.numbers(index) for index in range(call.arity)]
    given = [host for host in hosts if host is not None and host.rank == 1]
    if len(given) == len(hosts):
        items = tuple(item for host in given for item in host.items)
        return Host(items, 1, given[0].dtype)
    return f"torch.cat([{', '.join(call.tensors)}], {call.integer('axis', 1)})"


def gather_elements(call: Call) -> str:
    return call.helper(runtime.gather_elements, *call.tensors, call.integer("axis", 0))


def gather_nd(call: Call) -> str:
    return call.helper(runtime.gather_nd, *call.tensors, call.integer("batch_dims", 0))


def scatter_elements(call: Call) -> str:
    reduction = call.string("reduction", "none")
    axis = call.integer("axis", 0)
    return call.helper(runtime.scatter_elements, *call.tensors, axis, repr(reduction))


def scatter_nd(call: Call) -> str:
    return call.helper(runtime.scatter_nd, *call.tensors, repr(call.string("reduction", "none")))


def top_k(call: Call) -> Several:
    count = str(call.integer("k", 1)) if call.arity == 1 else call.number_text(1)
    axis, largest = call.integer("axis", -1), bool(call.integer("largest", 1))
    return Several(call.helper(runtime.top_k, call.tensor(0), count, axis, largest), 2)


def one_hot(call: Call) -> str:
    axis, depth = call.integer("axis", -1), call.number_text(1)
    return call.helper(runtime.one_hot, call.tensor(0), depth, call.tensor(2), axis)


def compress(call: Call) -> str:
    axis = call.view.node.attributes.get("axis")
    text = None if axis is None else axis.as_int()
    return call.helper(runtime.compress, *call.tensors, text)


def trilu(call: Call) -> str:
    name = "triu" if call.integer("upper", 1) else "tril"
    return f"torch.{name}({call.tensor(0)}{', ' + call.number_text(1) if call.has(1) else ''})"


def reverse_sequence(call: Call) -> str:
    axes = call.integer("batch_axis", 1), call.integer("time_axis", 0)
    return call.helper(runtime.reverse_sequence, *call.tensors, *axes)


def unique(call: Call) -> Several:
    axis = call.view.node.attributes.get("axis")
    text = None if axis is None else axis.as_int()
    is_sorted = bool(call.integer("sorted", 1))
    return Several(call.helper(runtime.unique, call.tensor(0), text, is_sorted), 4)


def nonzero(call: Call) -> str:
    return f"torch.nonzero({call.tensor(0)}).t()"


def tensor_scatter(call: Call) -> str:
    mode, axis = call.string("mode", "linear"), call.integer("axis", -2)
    given = (call.tensor(0), call.tensor(1), call.optional(2))
    return call.helper(runtime.tensor_scatter, *given, axis, mode == "circular")


LOWERINGS: dict[str, Lowering] = {
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "Slice": slice_,
    "Split": split,
    "Concat": concat,
    "TopK": top_k,
    "OneHot": one_hot,
    "Compress": compress,
    "Trilu": trilu,
    "ReverseSequence": reverse_sequence,
    "Unique": unique,
    "NonZero": nonzero,
    "TensorScatter": tensor_scatter,
}
