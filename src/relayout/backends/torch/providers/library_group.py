"""Groups that libraries have one kernel for: a convolution or a product, and what follows it."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from enum import StrEnum

import onnx_ir as ir

from relayout.graph.read import constant_of, is_op, shape_of

UNBOUNDED = (-math.inf, math.inf)

CONTRIB_DOMAIN = "com.microsoft"


class Curve(StrEnum):
    """Activations that are more than bounds, by what torch calls them."""

    GELU = "gelu"
    SILU = "silu"
    HARD_SWISH = "hardswish"
    SIGMOID = "sigmoid"


CURVE_WORDS = {
    Curve.GELU: "GELU",
    Curve.SILU: "SiLU",
    Curve.HARD_SWISH: "HardSwish",
    Curve.SIGMOID: "Sigmoid",
}

CURVES: dict[tuple[str, str], Curve] = {
    ("", "Gelu"): Curve.GELU,
    (CONTRIB_DOMAIN, "Gelu"): Curve.GELU,
    ("", "Swish"): Curve.SILU,
    (CONTRIB_DOMAIN, "QuickGelu"): Curve.SILU,
    ("", "HardSwish"): Curve.HARD_SWISH,
    ("", "Sigmoid"): Curve.SIGMOID,
}
"""By domain and operator."""

SCALED_CURVES = {("", "Swish"): 1.0, (CONTRIB_DOMAIN, "QuickGelu"): 1.702}
"""Those that are curves only if what they multiply their operand by is 1, with its default."""


@dataclass(frozen=True, slots=True)
class Activation:
    """What is done to each element at the end: bounds, or a curve."""

    low: float = -math.inf
    high: float = math.inf
    curve: Curve | None = None

    @property
    def is_none(self) -> bool:
        return self.curve is None and (self.low, self.high) == UNBOUNDED

    @property
    def is_bounded(self) -> bool:
        """Whether it has two bounds."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def is_relu(self) -> bool:
        return self.curve is None and (self.low, self.high) == (0.0, math.inf)

    @property
    def words(self) -> str:
        """What it is called; nothing where there is none."""
        if self.curve is not None or self.is_relu:
            return "Relu" if self.curve is None else CURVE_WORDS[self.curve]
        bounds = ((self.low, "at least"), (self.high, "at most"))
        named = [f"{words} {bound:g}" for bound, words in bounds if math.isfinite(bound)]
        return " and ".join(named)


@dataclass(frozen=True, slots=True)
class LibraryGroup:
    """A convolution, or a product with a constant matrix, with bias, residual and activation."""

    anchor: ir.Node
    nodes: tuple[ir.Node, ...]
    weight: ir.Value
    bias: ir.Value | None
    residual: ir.Value | None
    activation: Activation
    output: ir.Value

    @property
    def source(self) -> ir.Value:
        value = self.anchor.inputs[0]
        if value is None:
            raise ValueError(f"{self.anchor.name!r} has no operand")
        return value

    @property
    def is_conv(self) -> bool:
        return self.anchor.op_type == "Conv"

    @property
    def depth(self) -> int:
        """The length of the axis of its operand that is summed over, in one group of channels."""
        return self._lengths[1 if self.is_conv else 0]

    @property
    def width(self) -> int:
        """The length of the axis of its result that the weight gives."""
        return self._lengths[0 if self.is_conv else 1]

    @property
    def _lengths(self) -> tuple[int, ...]:
        tensor = constant_of(self.weight)
        return () if tensor is None else tuple(tensor.shape.numpy())


def read_library_group(nodes: Sequence[ir.Node]) -> LibraryGroup | None:
    """What libraries take of a group: from its convolution or product as far as they can go."""
    inside = set(nodes)
    found = (_fused_at(node, inside) for node in nodes)
    return next((fused for fused in found if fused is not None), None)


def _fused_at(node: ir.Node, inside: Container[ir.Node]) -> LibraryGroup | None:
    if not is_op(node, "Conv", "MatMul"):
        return None
    weight = node.inputs[1]
    rank = len(shape_of(weight) or ())
    if (
        weight is None
        or constant_of(weight) is None
        or rank != (2 if node.op_type == "MatMul" else 4)
    ):
        return None
    nodes, value = [node], node.outputs[0]
    bias = node.inputs[2] if node.op_type == "Conv" and len(node.inputs) > 2 else None
    if bias is not None and constant_of(bias) is None:
        return None
    residual = None
    total = _only_reader(value, inside)
    if node.op_type == "MatMul" and total is not None and is_op(total, "Add"):
        bias = _other(total, value)
        if constant_of(bias) is not None and shape_of(bias) == (shape_of(weight) or ())[1:]:
            nodes, value = [*nodes, total], total.outputs[0]
            total = _only_reader(value, inside)
        else:
            bias = None
    if total is not None and is_op(total, "Add"):
        other = _other(total, value)
        if _is_residual(other, value):
            nodes, value, residual = [*nodes, total], total.outputs[0], other
    activation, more = _activation_after(value, inside)
    nodes += more
    return LibraryGroup(
        node, tuple(nodes), weight, bias, residual, activation, nodes[-1].outputs[0]
    )


def _activation_after(
    value: ir.Value, inside: Container[ir.Node]
) -> tuple[Activation, tuple[ir.Node, ...]]:
    node = _only_reader(value, inside)
    if node is None or node.inputs[0] is not value:
        return Activation(), ()
    activation = activation_of(node)
    return (Activation(), ()) if activation is None else (activation, (node,))


def activation_of(node: ir.Node) -> Activation | None:
    """The activation that a node is, if kernels have it."""
    if is_op(node, "Relu"):
        return Activation(low=0.0)
    curve = _curve_of(node)
    if curve is not None or not is_op(node, "Clip"):
        return None if curve is None else Activation(curve=curve)
    if "min" in node.attributes or "max" in node.attributes:
        least, most = (
            node.attributes.get_float("min", -math.inf),
            node.attributes.get_float("max", math.inf),
        )
        return Activation(least, most)
    if any(value is not None and constant_of(value) is None for value in node.inputs[1:]):
        return None
    low, high = (_number(value) for value in (*node.inputs[1:], None, None)[:2])
    return Activation(-math.inf if low is None else low, math.inf if high is None else high)


def _curve_of(node: ir.Node) -> Curve | None:
    """The curve that a node is, in one of the forms that there are of it."""
    key, attributes = (node.domain, node.op_type), node.attributes
    if key == ("", "Gelu") and attributes.get_string("approximate", "none") != "none":
        return None
    if key in SCALED_CURVES and attributes.get_float("alpha", SCALED_CURVES[key]) != 1:
        return None
    return CURVES.get(key)


def _number(value: ir.Value | None) -> float | None:
    tensor = constant_of(value)
    return None if tensor is None else float(tensor.numpy().reshape(()))


def _is_residual(other: ir.Value | None, value: ir.Value) -> bool:
    shape = shape_of(value)
    return (
        other is not None
        and other is not value
        and constant_of(other) is None
        and shape is not None
        and shape == shape_of(other)
        and None not in shape
    )


def _other(node: ir.Node, value: ir.Value) -> ir.Value | None:
    return node.inputs[1] if node.inputs[0] is value else node.inputs[0]


def _only_reader(value: ir.Value, inside: Container[ir.Node]) -> ir.Node | None:
    """The one node that reads a value, if it belongs to the group."""
    uses = value.uses()
    if len(uses) != 1 or value.is_graph_output():
        return None
    (use,) = uses
    return use.node if use.node in inside else None
