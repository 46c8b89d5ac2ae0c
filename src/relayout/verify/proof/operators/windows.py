"""Convolutions and pools: windows that move along some axes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from relayout.verify.proof.call import NodeCall, Rule
from relayout.verify.proof.frames import Column, combined
from relayout.verify.proof.lengths import Length, floor, minus, plus, quotient, symbol, times
from relayout.verify.proof.operators.contractions import SUM, contracted
from relayout.verify.proof.operators.elementwise import elementwise
from relayout.verify.proof.operators.linear import added
from relayout.verify.proof.table import NotKnownError, TermValue
from relayout.verify.proof.views import reshaped, transposed, unsqueezed


@dataclass(frozen=True)
class SlidingWindow:
    """A window along one axis; `length` is that of the result."""

    size: Length
    stride: int
    dilation: int
    before: Hashable
    after: Hashable
    length: Length

    @property
    def touches_one(self) -> bool:
        """Whether each place of the result sees exactly the same place of the operand."""
        return (self.size, self.stride, self.before, self.after) == (1, 1, 0, 0)

    @property
    def role(self) -> Hashable:
        return "window", self.size, self.stride, self.dilation, self.before, self.after, self.length


def windows(
    call: NodeCall, lengths: tuple[Length, ...], sizes: tuple[Length, ...]
) -> list[SlidingWindow]:
    count = len(lengths)
    strides = call.attribute("strides", (1,) * count)
    dilations = call.attribute("dilations", (1,) * count)
    pads = call.attribute("pads", (0,) * (2 * count))
    same = call.text("auto_pad", "NOTSET")
    _check_kernel(call, sizes)
    found = []
    for i, (length, size) in enumerate(zip(lengths, sizes, strict=True)):
        if not isinstance(size, int):
            raise NotKnownError("a window of open length")
        reach = (size - 1) * dilations[i] + 1
        if same in ("SAME_UPPER", "SAME_LOWER"):
            before, after, result = _same(length, reach, strides[i], upper=same == "SAME_UPPER")
        else:
            before, after = (0, 0) if same == "VALID" else (pads[i], pads[i + count])
            ceil = call.attribute("ceil_mode", 0)
            result = _moved(length, before + after, reach, strides[i], ceil=ceil)
            result = _last_inside(result, length, before, strides[i], call)
        found.append(SlidingWindow(size, strides[i], dilations[i], before, after, result))
    return found


def _check_kernel(call: NodeCall, sizes: tuple[Length, ...]) -> None:
    if tuple(call.attribute("kernel_shape", sizes)) != tuple(sizes):
        raise NotKnownError("a window of other lengths than its weight")


def _moved(length: Length, around: int, reach: int, stride: int, *, ceil: int) -> Length:
    room = plus(length, around - reach)
    return plus(floor(plus(room, stride - 1) if ceil else room, stride), 1)


def _last_inside(
    result: Length, length: Length, before: int, stride: int, call: NodeCall
) -> Length:
    """With ceil_mode, a window that would start behind the padding is left out."""
    if not call.attribute("ceil_mode", 0):
        return result
    if not isinstance(result, int) or not isinstance(length, int):
        return symbol(f"windows({length}; {before}, {stride}; {result})")
    return result - 1 if (result - 1) * stride >= length + before else result


def _same(
    length: Length, reach: int, stride: int, *, upper: bool
) -> tuple[Hashable, Hashable, Length]:
    result = floor(plus(length, stride - 1), stride)
    needed = minus(plus(times(minus(result, 1), stride), reach), length)
    if not isinstance(needed, int):
        return ("same", upper), ("same", upper), result
    around = max(needed, 0)
    before = around // 2 if upper else around - around // 2
    return before, around - before, result


def grouped(
    call: NodeCall, value: TermValue, weight: TermValue
) -> tuple[TermValue, TermValue, int]:
    """Operand and weight with an axis for the groups: [N,g,C,...] and [g,M,C,...] as given."""
    groups = int(call.attribute("group", 1))
    inner, each = quotient(value.shape[1], groups), quotient(weight.shape[0], groups)
    if inner is None or each is None:
        raise NotKnownError("groups of an open number of channels")
    shape, form = value.shape, weight.shape
    value = reshaped(call.table, value, [shape[0], groups, inner, *shape[2:]])
    return value, reshaped(call.table, weight, [groups, each, *form[1:]]), groups


def conv_columns(moved: list[SlidingWindow], kind: str) -> tuple[list[Column], bool]:
    columns = [
        Column(((0, 0),)),
        Column(((0, 1), (1, 0))),
        Column(((1, 1),)),
        Column(((0, 2), (1, 2)), SUM, kept=False),
    ]
    plain = True
    for i, window in enumerate(moved, 3):
        if window.touches_one:
            columns.append(Column(((0, i),)))
            continue
        plain = False
        dims = ((0, i), (1, i))
        role = (kind, window.role)
        columns.append(Column(dims, role, ordered=True, length=window.length))
    return columns, plain


def _biased(call: NodeCall, value: TermValue, bias: TermValue | None) -> TermValue:
    if bias is None:
        return value
    across = unsqueezed(bias, range(1, value.rank - 1))
    return added(call.table, [value, across])


def convolved(call: NodeCall) -> TermValue:
    value, weight, _ = grouped(call, call.operand(0), call.operand(1))
    moved = windows(call, value.shape[3:], weight.shape[3:])
    columns, plain = conv_columns(moved, "windows")
    if plain:
        result = contracted(call.table, [value, weight], columns)
    else:
        result = combined(call.table, ("sum of windows",), [value, weight], columns)
    batch, groups, each, *rest = result.shape
    return reshaped(call.table, result, [batch, times(groups, each), *rest])


def _conv(call: NodeCall) -> list[TermValue]:
    return [_biased(call, convolved(call), call.optional(2))]


def _fused_conv(call: NodeCall) -> list[TermValue]:
    result = _conv(call)[0]
    if call.optional(3) is not None:
        result = added(call.table, [result, call.operand(3)])
    name = call.text("activation")
    if call.attribute("activation_params"):
        raise NotKnownError("an activation with parameters")
    return [elementwise(call.table, (name, frozenset()), [result]) if name else result]


def _conv_transpose(call: NodeCall) -> list[TermValue]:
    value, weight, _ = grouped(call, call.operand(0), call.operand(1))
    weight = transposed(weight, (0, 2, 1, *range(3, weight.rank)))
    lengths, sizes = value.shape[3:], weight.shape[3:]
    _check_kernel(call, sizes)
    count = len(lengths)
    strides = call.attribute("strides", (1,) * count)
    dilations = call.attribute("dilations", (1,) * count)
    pads = call.attribute("pads", (0,) * (2 * count))
    extra = call.attribute("output_padding", (0,) * count)
    if call.text("auto_pad", "NOTSET") not in ("NOTSET", "VALID") or call.attribute("output_shape"):
        raise NotKnownError("ConvTranspose by the shape of its result")
    moved = []
    for i in range(count):
        reach = plus(times(minus(sizes[i], 1), dilations[i]), 1)
        length = plus(times(minus(lengths[i], 1), strides[i]), reach)
        length = plus(length, extra[i] - pads[i] - pads[i + count])
        after = pads[i + count] - extra[i]
        moved.append(SlidingWindow(sizes[i], strides[i], dilations[i], pads[i], after, length))
    columns, plain = conv_columns(moved, "spread")
    if plain:
        result = contracted(call.table, [value, weight], columns)
    else:
        result = combined(call.table, ("sum of windows",), [value, weight], columns)
    batch, groups, each, *rest = result.shape
    merged = reshaped(call.table, result, [batch, times(groups, each), *rest])
    return [_biased(call, merged, call.optional(2))]


def pool_columns(call: NodeCall, value: TermValue) -> list[Column]:
    moved = windows(call, value.shape[2:], tuple(call.attribute("kernel_shape")))
    columns = [Column(((0, 0),)), Column(((0, 1),))]
    for d, window in enumerate(moved, 2):
        if window.touches_one:
            columns.append(Column(((0, d),)))
        else:
            columns.append(Column(((0, d),), window.role, ordered=True, length=window.length))
    return columns


def _max_pool(call: NodeCall) -> list[TermValue]:
    if any(call.node.output[1:]):
        raise NotKnownError("MaxPool with indices")
    value = call.operand(0)
    return [combined(call.table, ("MaxPool",), [value], pool_columns(call, value))]


def _pool(call: NodeCall) -> list[TermValue]:
    value = call.operand(0)
    key = (call.node.op_type, call.attribute("count_include_pad", 0), call.attribute("p", 2))
    return [combined(call.table, key, [value], pool_columns(call, value))]


RULES: dict[tuple[str, str], Rule] = {
    ("", "Conv"): _conv,
    ("", "ConvTranspose"): _conv_transpose,
    ("", "MaxPool"): _max_pool,
    ("", "AveragePool"): _pool,
    ("", "LpPool"): _pool,
    ("com.microsoft", "FusedConv"): _fused_conv,
}
