"""Reductions over sets of axes, and operators that walk one axis in order."""

from __future__ import annotations

from collections.abc import Sequence

from relayout.verify.proof.call import NodeCall, Rule
from relayout.verify.proof.constants import of_data
from relayout.verify.proof.frames import Column, combined
from relayout.verify.proof.lengths import product
from relayout.verify.proof.operators.contractions import SUM, contracted
from relayout.verify.proof.operators.elementwise import elementwise
from relayout.verify.proof.table import Data, NotKnownError, TermTable, TermValue

REDUCED = "reduced"
KINDS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
KEEPING = ("Max", "Mean", "Min", "Prod", "Sum")
"""Reductions that leave a single element as it is."""


def reduced(
    table: TermTable, kind: str, value: TermValue, axes: Sequence[int], *, keep: bool
) -> TermValue:
    columns = [
        Column(((0, axis),), SUM, kept=False)
        if axis in axes and kind == "Sum"
        else Column(((0, axis),), REDUCED if axis in axes else None, kept=axis not in axes)
        for axis in range(value.rank)
    ]
    if kind == "Sum":
        result = contracted(table, [value], columns)
    else:
        result = combined(table, ("reduce", kind), [value], columns)
    if not keep:
        return result
    left = iter(result.known_dims)
    return result.with_dims([() if axis in axes else next(left) for axis in range(value.rank)])


def _along_no_axis(table: TermTable, kind: str, value: TermValue) -> TermValue:
    """A value of which no axis is reduced: some kinds may still change each element."""
    return value if kind in KEEPING else elementwise(table, ("reduce one", kind), [value])


def _reduce(kind: str) -> Rule:
    def rule(call: NodeCall) -> list[TermValue]:
        value, axes = call.operand(0), call.numbers(1, "axes")
        keep = bool(call.attribute("keepdims", 1))
        reduces_nothing = call.attribute("noop_with_empty_axes", 0)
        if not axes:
            if reduces_nothing:
                return [_along_no_axis(call.table, kind, value)]
            axes = tuple(range(value.rank))
        places = [axis % value.rank for axis in axes]
        result = reduced(call.table, kind, value, places, keep=keep)
        if kind == "Prod" and value.data is not None and len(set(places)) == value.rank:
            data = Data(value.data.kind, (product(value.data.elements),))
            return [of_data(call.table, data, result.shape)]
        return [result]

    return rule


def _global(kind: str) -> Rule:
    def rule(call: NodeCall) -> list[TermValue]:
        value = call.operand(0)
        return [reduced(call.table, kind, value, range(2, value.rank), keep=True)]

    return rule


def _arg(call: NodeCall) -> list[TermValue]:
    value = call.operand(0)
    axis = call.axis("axis", 0, value.rank)
    columns = [
        Column(((0, d),), "searched" if d == axis else None, kept=d != axis, ordered=d == axis)
        for d in range(value.rank)
    ]
    key = (call.node.op_type, call.settings("axis", "keepdims"))
    result = combined(call.table, key, [value], columns)
    if not call.attribute("keepdims", 1):
        return [result]
    dims = list(result.known_dims)
    return [result.with_dims([*dims[:axis], (), *dims[axis:]])]


def _top_k(call: NodeCall) -> list[TermValue]:
    value, count = call.operand(0), call.lengths(1, "k")
    assert count is not None
    axis = call.axis("axis", -1, value.rank)
    key = ("TopK", call.settings("axis", "k"))
    results = []
    for number in range(2):
        columns = [
            Column(((0, d),), "ranked", ordered=True, length=count[0])
            if d == axis
            else Column(((0, d),))
            for d in range(value.rank)
        ]
        results.append(combined(call.table, (*key, number), [value], columns))
    return results


def _cumulative(call: NodeCall) -> list[TermValue]:
    value, axes = call.operand(0), call.numbers(1)
    assert axes is not None
    axis = call.place(axes[0], value.rank)
    columns = [
        Column(((0, d),), "cumulative", ordered=True) if d == axis else Column(((0, d),))
        for d in range(value.rank)
    ]
    return [combined(call.table, ("CumSum", call.settings()), [value], columns)]


def _hardmax(call: NodeCall) -> list[TermValue]:
    if call.since < 13:
        raise NotKnownError("Hardmax over merged axes")
    value = call.operand(0)
    axis = call.axis("axis", -1, value.rank)
    columns = [
        Column(((0, d),), "searched", ordered=True) if d == axis else Column(((0, d),))
        for d in range(value.rank)
    ]
    return [combined(call.table, ("Hardmax",), [value], columns)]


RULES: dict[tuple[str, str], Rule] = {
    **{("", f"Reduce{kind}"): _reduce(kind) for kind in KINDS},
    ("", "GlobalAveragePool"): _global("Mean"),
    ("", "GlobalMaxPool"): _global("Max"),
    ("", "ArgMax"): _arg,
    ("", "ArgMin"): _arg,
    ("", "TopK"): _top_k,
    ("", "CumSum"): _cumulative,
    ("", "Hardmax"): _hardmax,
}
