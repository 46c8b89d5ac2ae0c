"""Runtimes whose kernels read channels last, and the way back from them to standard ONNX."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import onnx_ir as ir

from relayout.graph.read import NodeView, is_default, is_op, is_standard
from relayout.graph.region import KERNEL_DOMAIN
from relayout.layout.permutation import Permutation
from relayout.layout.transport import AttributeValue, Changes, Refusal, Transport
from relayout.ops.matmul import Dialect
from relayout.ops.product import matmul_rule, write_matmul
from relayout.ops.registry import facts_named
from relayout.ops.rule import OpRule, barrier
from relayout.targets.channels_last import (
    AUTO_PAD,
    HWIO,
    KERNELS,
    NO_ATTRIBUTES,
    OPERATORS,
    PADS,
    ChannelsLastKernel,
    ChannelsLastOperator,
    attributes_of,
)


def kernel_of(
    operator: ChannelsLastOperator, weights: str, view: NodeView
) -> ChannelsLastKernel | Refusal:
    """The kernel that does channels last what a standard node does."""
    rank = view.rank(0)
    if rank is None or rank not in operator.ranks:
        return Refusal(f"no kernel reads {rank} axes channels last")
    given = tuple(i for i in range(view.arity) if view.has(i) and view.shape(i) != (0,))
    is_automatic = view.string(AUTO_PAD, "NOTSET") != "NOTSET"
    order = HWIO if operator.weight is None else weights
    kernel = ChannelsLastKernel(operator, rank, given[-1] + 1, is_automatic, order)
    if given != kernel.slots or view.results != 1 or view.version < operator.since:
        return Refusal(f"no kernel has these operands and results of {view.op_type}")
    contradicting = sorted(NO_ATTRIBUTES.intersection(view.node.attributes))
    if contradicting:
        return Refusal(f"no kernel has the {contradicting[0]} of {view.op_type}")
    return kernel if kernel.name in KERNELS else Refusal(f"there is no kernel {kernel.name}")


def written_attributes(
    kernel: ChannelsLastKernel, view: NodeView
) -> dict[str, AttributeValue] | Refusal:
    """The attributes to add to a standard node, so that the kernel has all of its own."""
    dropped = PADS if kernel.auto_pad else AUTO_PAD
    attributes: dict[str, AttributeValue] = {}
    if dropped in view.node.attributes:
        attributes[dropped] = None
    for name in kernel.attributes(view.version):
        if name in view.node.attributes:
            continue
        value = _default(kernel, view, name)
        if value is None:
            return Refusal(f"the {name} of {view.op_type} is not known")
        attributes[name] = value
    return attributes


def _default(kernel: ChannelsLastKernel, view: NodeView, name: str) -> AttributeValue:
    """What the standard operator takes for an attribute that is left out."""
    spatial = kernel.rank - 2
    if name in {"strides", "dilations"}:
        return (1,) * spatial
    if name in {PADS, "output_padding"}:
        return (0,) * spatial * (2 if name == PADS else 1)
    if name == "kernel_shape" and kernel.operator.weight is not None:
        shape = view.shape(kernel.operator.weight) or ()
        lengths = tuple(length for length in shape[2:] if isinstance(length, int))
        return lengths if len(lengths) == spatial else None
    default = attributes_of(view.op_type, view.version)[name].default
    return default.value if isinstance(default, ir.Attr) else None


def to_kernel(operator: ChannelsLastOperator, weights: str, view: NodeView) -> Transport | Refusal:
    """A standard node restated channels last."""
    if view.op_type == "BatchNormalization" and (
        view.integer("training_mode", 0) or not view.integer("spatial", 1)
    ):
        return Refusal("the kernel of BatchNormalization has statistics per channel, as given")
    kernel = kernel_of(operator, weights, view)
    if isinstance(kernel, Refusal):
        return kernel
    attributes = written_attributes(kernel, view)
    if isinstance(attributes, Refusal):
        return attributes
    vector = _vector(view, operator.vector, kernel.channels_last)
    if isinstance(vector, Refusal):
        return vector
    left_out = (None,) * (view.arity - kernel.arity)
    changes = Changes(
        attributes, op_type=kernel.name, domain=KERNEL_DOMAIN, operand_order=kernel.slots
    )
    return Transport((*kernel.orders, *left_out), (kernel.channels_last,), changes | vector)


def _vector(view: NodeView, index: int | None, order: Permutation) -> Changes | Refusal:
    """An operand with one entry per axis, for axes stored in another order."""
    if index is None:
        return Changes()
    known = view.constant(index)
    if known is not None and known.shape == (order.rank,):
        return Changes(constants={index: known[list(order.axes)]})
    if view.shape(index) != (order.rank,):
        return Refusal(f"{view.op_type} does not have an entry for each of its axes")
    return Changes(gathers={index: order.axes})


def _demanding(op_type: str, weights: str) -> OpRule:
    """The rule of a standard operator, which this target wants channels last."""
    standard = facts_named("", op_type).rule
    operators = _operators(op_type)

    def kernel_for(view: NodeView) -> Transport | Refusal:
        if _has_defaults(view):
            return Refusal(f"a caller may replace parameters of {op_type}")
        answers = [to_kernel(operator, weights, view) for operator in operators]
        kernel = next((a for a in answers if isinstance(a, Transport)), answers[0])
        return kernel if operators[0].vector is None else unless_standard(view, kernel)

    def unless_standard(view: NodeView, kernel: Transport | Refusal) -> Transport | Refusal:
        """The standard operator names the axes it changes, so it needs no kernel where runtimes
        can change these.
        """
        order = kernel.inputs[0] if isinstance(kernel, Transport) else None
        if not isinstance(order, Permutation):
            return kernel
        is_refused = isinstance(standard.transport(view, order), Refusal)
        if is_refused and _keeps_channels(view):
            return kernel
        return Refusal(f"{op_type} has parameters for each axis, so it needs no kernel")

    def transport(view: NodeView, order: Permutation) -> Transport | Refusal:
        kernel = kernel_for(view)
        if isinstance(kernel, Transport) and kernel.inputs[0] == order:
            return kernel
        return standard.transport(view, order)

    def wanted(view: NodeView) -> Permutation | None:
        kernel = kernel_for(view)
        order = None if isinstance(kernel, Refusal) else kernel.inputs[0]
        return order if isinstance(order, Permutation) else None

    return replace(standard, transport=transport, wanted=wanted, separate=None, barrier=False)


def rests_on_default(value: ir.Value | None) -> bool:
    """Whether a caller may replace what a value holds, or what it is dequantised from."""
    maker = None if value is None else value.producer()
    if maker is not None and is_op(maker, "DequantizeLinear"):
        value = maker.inputs[0]
    return is_default(value)


def _has_defaults(view: NodeView) -> bool:
    """Whether a caller may replace weights, scales or the like of a node.

    A weight would have to be transposed at every run. Other operators with such parameters are
    between convolutions with such weights: channels last they would cost two Transposes.
    """
    return any(map(rests_on_default, view.node.inputs[1:]))


def is_held_by_defaults(weights: str, view: NodeView) -> bool:
    """Whether a node has no kernel only because a caller may replace its parameters."""
    operators = _operators(view.op_type) if is_standard(view.node) else []
    kernels = (to_kernel(operator, weights, view) for operator in operators)
    return _has_defaults(view) and any(isinstance(kernel, Transport) for kernel in kernels)


def _operators(op_type: str) -> list[ChannelsLastOperator]:
    return [operator for operator in OPERATORS if operator.op_type == op_type]


def _keeps_channels(view: NodeView) -> bool:
    """Whether a Resize is known to change the last axis and not the first two.

    One that was written channels last changes others.
    """
    scales, sizes = view.constant(2), view.constant(3)
    if scales is not None and scales.size:
        kept = [scale == 1 for scale in scales.tolist()]
    elif sizes is not None:
        pairs = zip(view.shape(0) or (), sizes.tolist(), strict=False)
        kept = [length == size for length, size in pairs]
    else:
        return False
    return len(kept) > 2 and kept[1] and not kept[-1]


def from_kernel(
    kernel: ChannelsLastKernel, view: NodeView, order: Permutation
) -> Transport | Refusal:
    """A kernel restated as the standard operator, which reads channels first."""
    first = kernel.channels_last.inverse()
    if order != first:
        return Refusal(f"{view.op_type} runs channels last, and its operator channels first")
    slots = kernel.slots
    if view.arity != len(slots):
        return Refusal(f"{view.op_type} does not have {len(slots)} operands")
    vector = kernel.operator.vector
    changes = _vector(view, None if vector is None else slots.index(vector), first)
    if isinstance(changes, Refusal):
        return changes
    places = [slots.index(slot) if slot in slots else None for slot in range(kernel.arity)]
    stored = [kernel.orders[slot] for slot in slots]
    standard = Changes(op_type=kernel.operator.op_type, domain="", operand_order=tuple(places))
    inputs = tuple(None if order is None else order.inverse() for order in stored)
    return Transport(inputs, (first,), changes | standard)


def _dissolving(kernel: ChannelsLastKernel) -> OpRule:
    """The rule of a kernel where only standard operators are wanted."""

    def wanted(view: NodeView) -> Permutation | None:
        is_whole = view.rank(0) == kernel.rank and view.arity == len(kernel.slots)
        return kernel.channels_last.inverse() if is_whole else None

    transport = partial(from_kernel, kernel)
    return OpRule(transport, wanted=wanted)


PRODUCT = matmul_rule(Dialect(write_matmul), convolves=False)
"""A product that became a Conv would be one without a kernel."""


def rules(weights: str = HWIO) -> dict[tuple[str, str], OpRule]:
    """What such a runtime runs beyond standard ONNX, with its weights in this order."""
    op_types = dict.fromkeys(operator.op_type for operator in OPERATORS)
    demanding = {("", op_type): _demanding(op_type, weights) for op_type in op_types}
    return {**demanding, **KERNEL_RULES, ("", "MatMul"): PRODUCT}


KERNEL_RULES: dict[tuple[str, str], OpRule] = {
    (KERNEL_DOMAIN, name): barrier(f"{name} runs channels last") for name in KERNELS
}
"""A kernel stays what it is on a runtime that has it."""

WAY_BACK: dict[tuple[str, str], OpRule] = {
    (KERNEL_DOMAIN, name): _dissolving(kernel) for name, kernel in KERNELS.items()
}
"""How a runtime without such kernels runs them: as standard operators."""
