"""Runtimes whose kernels read channels last, and the way back from them to standard ONNX."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import onnx_ir as ir

from relayout.graph.read import NodeView
from relayout.graph.region import KERNEL_DOMAIN
from relayout.layout.permutation import Permutation
from relayout.layout.transport import AttributeValue, Changes, Refusal, Transport
from relayout.ops.registry import RULES as STANDARD
from relayout.ops.rule import OpRule, barrier
from relayout.targets.channels_last import (
    AUTO_PAD,
    HWIO,
    KERNELS,
    NO_ATTRIBUTES,
    OPERATORS,
    PADS,
    Kernel,
    Operator,
    attributes_of,
)


def kernel_of(operator: Operator, weights: str, view: NodeView) -> Kernel | Refusal:
    """The kernel that does channels last what a standard node does."""
    rank = view.rank(0)
    if rank is None or rank not in operator.ranks:
        return Refusal(f"no kernel reads {rank} axes channels last")
    arity = sum(view.has(index) for index in range(view.arity))
    if not all(view.has(index) for index in range(arity)) or view.results != 1:
        return Refusal(f"no kernel has these operands and results of {view.op_type}")
    is_automatic = view.string(AUTO_PAD, "NOTSET") != "NOTSET"
    order = HWIO if operator.weight is None else weights
    kernel = Kernel(operator, rank, arity, is_automatic, order)
    contradicting = sorted(NO_ATTRIBUTES.intersection(view.node.attributes))
    if contradicting:
        return Refusal(f"no kernel has the {contradicting[0]} of {view.op_type}")
    return kernel if kernel.name in KERNELS else Refusal(f"there is no kernel {kernel.name}")


def written_attributes(kernel: Kernel, view: NodeView) -> dict[str, AttributeValue] | Refusal:
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


def _default(kernel: Kernel, view: NodeView, name: str) -> AttributeValue:
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


def to_kernel(operator: Operator, weights: str, view: NodeView) -> Transport | Refusal:
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
    left_out = (None,) * (view.arity - kernel.arity)
    changes = Changes(
        attributes,
        op_type=kernel.name,
        domain=KERNEL_DOMAIN,
        operand_order=tuple(range(kernel.arity)),
    )
    return Transport((*kernel.orders, *left_out), (kernel.channels_last,), changes)


def _demanding(operator: Operator, weights: str) -> OpRule:
    """The rule of a standard operator, which this target wants channels last."""
    standard = STANDARD["", operator.op_type]

    def transport(view: NodeView, order: Permutation) -> Transport | Refusal:
        kernel = to_kernel(operator, weights, view)
        if isinstance(kernel, Transport) and kernel.inputs[0] == order:
            return kernel
        return standard.transport(view, order)

    def wanted(view: NodeView) -> Permutation | None:
        kernel = to_kernel(operator, weights, view)
        return None if isinstance(kernel, Refusal) else kernel.inputs[0]

    return replace(standard, transport=transport, wanted=wanted, barrier=False)


def from_kernel(kernel: Kernel, view: NodeView, order: Permutation) -> Transport | Refusal:
    """A kernel restated as the standard operator, which reads channels first."""
    first = kernel.channels_last.inverse()
    if order != first:
        return Refusal(f"{view.op_type} runs channels last, and its operator channels first")
    if view.arity != kernel.arity:
        return Refusal(f"{view.op_type} does not have {kernel.arity} operands")
    inputs = tuple(None if stored is None else stored.inverse() for stored in kernel.orders)
    return Transport(inputs, (first,), Changes(op_type=kernel.operator.op_type, domain=""))


def _dissolving(kernel: Kernel) -> OpRule:
    """The rule of a kernel where only standard operators are wanted."""

    def wanted(view: NodeView) -> Permutation | None:
        is_whole = view.rank(0) == kernel.rank and view.arity == kernel.arity
        return kernel.channels_last.inverse() if is_whole else None

    transport = partial(from_kernel, kernel)
    return OpRule((kernel.name,), transport, domain=KERNEL_DOMAIN, wanted=wanted)


def rules(weights: str = HWIO) -> dict[tuple[str, str], OpRule]:
    """What such a runtime knows beyond standard ONNX, if it has its weights in an order."""
    demanding = {("", operator.op_type): _demanding(operator, weights) for operator in OPERATORS}
    return {**demanding, **KERNEL_RULES}


KERNEL_RULES: dict[tuple[str, str], OpRule] = {
    (KERNEL_DOMAIN, name): barrier(name, reason=f"{name} runs channels last", domain=KERNEL_DOMAIN)
    for name in KERNELS
}
"""A kernel stays what it is on a runtime that has it."""

WAY_BACK: dict[tuple[str, str], OpRule] = {
    (KERNEL_DOMAIN, name): _dissolving(kernel) for name, kernel in KERNELS.items()
}
"""What a runtime without such kernels makes of them."""
