"""Operators that reduce axes."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from relayout.backends.torch.lower.axes import is_operand, parameter, parameter_text
from relayout.backends.torch.lower.elementwise import WHOLE
from relayout.backends.torch.program.call import Call, Lowering, Results
from relayout.backends.torch.program.dtypes import FLOATS
from relayout.backends.torch.program.scalars import Host, Number, combine
from relayout.backends.torch.runtime import reduction as runtime


def reduced(form: str, helper: Callable[..., object]) -> Lowering:
    """`form` names the operand, the axes and whether they are kept.

    The helper does the same where it is known only at run time whether any axes are reduced.
    """

    def lower(call: Call) -> Results:
        axes = axes_text(call)
        if axes is None:
            return call.tensor(0)
        if not axes.startswith("("):
            return helped(helper)(call)
        return form.format(call.tensor(0), axes, bool(call.integer("keepdims", 1)))

    return lower


def axes_text(call: Call) -> str | None:
    """The axes that are reduced as a tuple; None where nothing is."""
    axes, rank = parameter(call, "axes", 1), call.rank(0)
    if axes is None and is_operand(call, "axes", 1):
        empty = bool(call.integer("noop_with_empty_axes", 0))
        given = parameter_text(call, "axes", 1)
        return call.helper(runtime.axes_of, call.tensor(0), given, empty)
    if axes:
        return repr(axes)
    if call.integer("noop_with_empty_axes", 0):
        return None
    return repr(tuple(range(rank))) if rank is not None else f"tuple(range({call.tensor(0)}.dim()))"


def helped(helper: Callable[..., object]) -> Lowering:
    def lower(call: Call) -> Results:
        axes = axes_text(call)
        if axes is None and helper in {runtime.reduce_max, runtime.reduce_min, runtime.reduce_prod}:
            return call.tensor(0)
        keeps = bool(call.integer("keepdims", 1))
        return call.helper(helper, call.tensor(0), "()" if axes is None else axes, keeps)

    return lower


def on_list(lowering: Lowering, form: str, compute: Callable[..., Number]) -> Lowering:
    """A reduction that is also done on Python numbers."""

    def lower(call: Call) -> Results:
        host = call.numbers(0)
        is_whole = host is not None and host.rank == 1 and host.dtype in WHOLE
        if host is None or not is_whole or not host.items or axes_text(call) is None:
            return lowering(call)
        item = host.items[0]
        for other in host.items[1:]:
            item = combine(form, (item, other), compute)
        return Host((item,), int(bool(call.integer("keepdims", 1))), host.dtype)

    return lower


def mean(call: Call) -> Results:
    if call.dtype(0) not in FLOATS and call.dtype(0) is not None:
        return helped(runtime.whole_mean)(call)
    return reduced("{}.mean({}, keepdim={})", runtime.reduce_mean)(call)


def extreme_place(name: str) -> Lowering:
    def lower(call: Call) -> str:
        axis, keeps = call.integer("axis", 0), bool(call.integer("keepdims", 1))
        if call.integer("select_last_index", 0):
            return call.helper(runtime.last_place, call.tensor(0), f"torch.{name}", axis, keeps)
        return f"torch.{name}({call.tensor(0)}, {axis}, keepdim={keeps})"

    return lower


def cumulative(name: str) -> Lowering:
    def lower(call: Call) -> str:
        axis = call.number_text(1)
        exclusive, backwards = call.integer("exclusive", 0), call.integer("reverse", 0)
        text = call.tensor(0)
        if exclusive or backwards:
            given = (text, axis, bool(exclusive), bool(backwards))
            return call.helper(runtime.cumulative, f"torch.{name}", *given)
        return f"torch.{name}({text}, {axis}, dtype={text}.dtype)"

    return lower


def total(call: Call) -> Results:
    dtype = call.dtype(0)
    if dtype in FLOATS or dtype == ir.DataType.INT64:
        return reduced("{}.sum({}, keepdim={})", runtime.reduce_sum)(call)
    return reduced("{0}.sum({1}, keepdim={2}, dtype={0}.dtype)", runtime.reduce_sum)(call)


LOWERINGS: dict[str, Lowering] = {
    "ReduceMean": mean,
    "ReduceSum": on_list(total, "{} + {}", lambda a, b: a + b),
    "ReduceMax": on_list(helped(runtime.reduce_max), "max({}, {})", max),
    "ReduceMin": on_list(helped(runtime.reduce_min), "min({}, {})", min),
    "ReduceProd": on_list(helped(runtime.reduce_prod), "{} * {}", lambda a, b: a * b),
    "ReduceL1": helped(runtime.reduce_l1),
    "ReduceL2": helped(runtime.reduce_l2),
    "ReduceLogSum": helped(runtime.reduce_log_sum),
    "ReduceLogSumExp": helped(runtime.reduce_log_sum_exp),
    "ReduceSumSquare": helped(runtime.reduce_sum_square),
    "ArgMax": extreme_place("argmax"),
    "ArgMin": extreme_place("argmin"),
    "CumSum": cumulative("cumsum"),
    "CumProd": cumulative("cumprod"),
}
