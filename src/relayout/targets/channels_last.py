"""Operators that read and write batch, spatial axes, channels, as functions of the domain relayout.

Standard ONNX has none. Each is defined by a body in standard ONNX, so runtimes that support
model-local functions run the file (ONNX Runtime and onnx's reference evaluator do; OpenVINO 2026.4
does not). A compiler whose kernels want channels last knows the operator by its name and leaves the
body alone.

A body depends on the number of axes and on which operands are given, and the name states both:
`Conv2d` reads a tensor of 4 axes, `Conv2d_B` has a bias. A body with `auto_pad` in place of `pads`
is another one, `Conv2d_auto_pad`, and so is one whose weight is not stored as spatial axes, inputs,
outputs (HWIO): `Conv2d_OHWI`. `Resize2d_scales` and `Resize2d_sizes` read one entry per axis, that
of the channels last, and are used only where runtimes cannot interpolate channels last by the
standard operator. All other attributes are those of the standard operator and are always given: not
every runtime can leave out an attribute that a body refers to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import onnx
from onnx import helper
from onnx_ir import schemas

from relayout.graph.read import schema_of
from relayout.graph.region import KERNEL_DOMAIN
from relayout.layout.permutation import Permutation
from relayout.targets.group_body import group_normalization

RANKS = (3, 4, 5)
AUTO_PAD = "auto_pad"
PADS = "pads"
HWIO, HWOI, OHWI = "HWIO", "HWOI", "OHWI"
WEIGHTS = (HWIO, HWOI, OHWI)
"""How a weight may be stored: its spatial axes (HW, of any number), inputs and outputs."""

NO_ATTRIBUTES = frozenset({"axes", "output_shape"})
"""Attributes of standard operators that contradict others, which a kernel always has."""


@dataclass(frozen=True, slots=True)
class ChannelsLastOperator:
    """A standard operator that takes channels from axis 1."""

    op_type: str
    operands: tuple[str, ...] = ("X",)
    """Its operands; one without a name is left out."""
    optional: tuple[str, ...] = ()
    """Operands that may be left out, from the last one on."""
    weight: int | None = None
    """The operand with two axes of channels and then the spatial ones."""
    inputs_first: bool = False
    """Whether the weight has its inputs, not its outputs, along axis 0."""
    windowed: bool = False
    """Whether it has the attribute `auto_pad`."""
    ranks: tuple[int, ...] = RANKS
    vector: int | None = None
    """The operand with one entry per axis, whose name is a part of the kernel's name."""
    since: int = 1
    """The opset version from which a body can be written."""
    body: Callable[[Permutation], list[onnx.NodeProto]] | None = None
    """What the body consists of where the standard operator cannot be in a function."""


NORMALISED = ("X", "scale", "B")
QUANTISED = ("x", "x_scale", "x_zero_point", "w", "w_scale", "w_zero_point")
ZERO_POINTS = ("x_zero_point", "w_zero_point")
OPERATORS = (
    ChannelsLastOperator("Conv", ("X", "W"), ("B",), weight=1, windowed=True),
    ChannelsLastOperator(
        "ConvTranspose", ("X", "W"), ("B",), weight=1, inputs_first=True, windowed=True
    ),
    ChannelsLastOperator("ConvInteger", ("x", "w"), ZERO_POINTS, weight=1, windowed=True),
    ChannelsLastOperator(
        "QLinearConv", (*QUANTISED, "y_scale", "y_zero_point"), ("B",), weight=3, windowed=True
    ),
    ChannelsLastOperator("MaxPool", windowed=True),
    ChannelsLastOperator("AveragePool", windowed=True),
    ChannelsLastOperator("LpPool", windowed=True),
    ChannelsLastOperator("GlobalAveragePool"),
    ChannelsLastOperator("GlobalMaxPool"),
    ChannelsLastOperator("GlobalLpPool"),
    ChannelsLastOperator("BatchNormalization", (*NORMALISED, "mean", "var")),
    ChannelsLastOperator("InstanceNormalization", NORMALISED),
    ChannelsLastOperator(
        "GroupNormalization", ("X", "scale", "bias"), since=21, body=group_normalization
    ),
    ChannelsLastOperator("LRN"),
    ChannelsLastOperator("Resize", ("X", "", "scales"), vector=2, since=13),
    ChannelsLastOperator("Resize", ("X", "", "", "sizes"), vector=3, since=13),
    ChannelsLastOperator("DepthToSpace", ranks=(4,)),
    ChannelsLastOperator("SpaceToDepth", ranks=(4,)),
)


@dataclass(frozen=True, slots=True)
class ChannelsLastKernel:
    """One function: an operator for tensors of some number of axes, with some of its operands."""

    operator: ChannelsLastOperator
    rank: int
    arity: int
    auto_pad: bool = False
    weights: str = HWIO

    @property
    def name(self) -> str:
        operator = self.operator
        vector = () if operator.vector is None else (operator.operands[operator.vector],)
        given = (*vector, *operator.optional[: self.arity - len(operator.operands)])
        order = () if self.weights == HWIO else (self.weights,)
        suffixes = (*given, *((AUTO_PAD,) if self.auto_pad else ()), *order)
        return "_".join((f"{self.operator.op_type}{self.rank - 2}d", *suffixes))

    @property
    def slots(self) -> tuple[int, ...]:
        """The operands of the standard operator that the kernel has."""
        return tuple(index for index, name in enumerate(self._named) if name)

    @property
    def operands(self) -> tuple[str, ...]:
        return tuple(filter(None, self._named))

    @property
    def _named(self) -> tuple[str, ...]:
        return (*self.operator.operands, *self.operator.optional)[: self.arity]

    @property
    def channels_last(self) -> Permutation:
        return Permutation((0, *range(2, self.rank), 1))

    @property
    def weight_order(self) -> Permutation:
        """From the weight of the standard operator to that of the kernel."""
        inputs, outputs = (0, 1) if self.operator.inputs_first else (1, 0)
        spatial = tuple(range(2, self.rank))
        orders = {
            HWIO: (*spatial, inputs, outputs),
            HWOI: (*spatial, outputs, inputs),
            OHWI: (outputs, *spatial, inputs),
        }
        return Permutation(orders[self.weights])

    @property
    def orders(self) -> tuple[Permutation | None, ...]:
        """How the kernel stores the operands of the standard operator."""
        orders: list[Permutation | None] = [None] * self.arity
        orders[0] = self.channels_last
        if self.operator.weight is not None:
            orders[self.operator.weight] = self.weight_order
        return tuple(orders)

    def attributes(self, version: int) -> list[str]:
        """The attributes of the function, by the standard operator of an opset version."""
        left_out = {*NO_ATTRIBUTES, PADS if self.auto_pad else AUTO_PAD}
        known = attributes_of(self.operator.op_type, version)
        return [name for name in sorted(known) if name not in left_out]

    def definition(self, version: int) -> onnx.FunctionProto:
        """The function in standard ONNX."""
        body = self.operator.body
        return helper.make_function(
            KERNEL_DOMAIN,
            self.name,
            self.operands,
            ["Y"],
            self._around_standard(version) if body is None else body(self.channels_last),
            [helper.make_opsetid("", version)],
            self.attributes(version),
        )

    def _around_standard(self, version: int) -> list[onnx.NodeProto]:
        """Transposes around the standard operator."""
        names, nodes = [], []
        for slot, operand in enumerate(self._named):
            moves = list(self._channels_first(slot))
            names.append(f"{operand}_first" if moves else operand)
            nodes += moves
        last = _transpose("Y_first", "Y", self.channels_last)
        return [*nodes, self._standard(names, version), last]

    def _channels_first(self, slot: int) -> Iterator[onnx.NodeProto]:
        """The nodes that bring an operand into the order that the standard operator reads."""
        operand, order = self._named[slot], self.orders[slot]
        if order is not None:
            yield _transpose(operand, f"{operand}_first", order.inverse())
        if slot == self.operator.vector:
            places = self.channels_last.inverse().axes
            yield helper.make_node("Constant", [], ["places"], value_ints=places)
            yield helper.make_node("Gather", [operand, "places"], [f"{operand}_first"])

    def _standard(self, operands: list[str], version: int) -> onnx.NodeProto:
        node = helper.make_node(self.operator.op_type, operands, ["Y_first"])
        known = attributes_of(self.operator.op_type, version)
        for name in self.attributes(version):
            node.attribute.add(name=name, ref_attr_name=name, type=known[name].type.value)
        return node


@lru_cache(maxsize=256)
def attributes_of(op_type: str, version: int) -> dict[str, schemas.AttributeParameter]:
    """The attributes of a standard operator in an opset version; none if it did not exist."""
    schema = schema_of(op_type, version)
    if schema is None:
        return {}
    signature = schemas.OpSignature.from_op_schema(schema)
    return {attribute.name: attribute for attribute in signature.attributes}


def _transpose(source: str, result: str, order: Permutation) -> onnx.NodeProto:
    return helper.make_node("Transpose", [source], [result], perm=order.axes)


def _kernels(operator: ChannelsLastOperator) -> list[ChannelsLastKernel]:
    least = len(operator.operands)
    return [
        ChannelsLastKernel(operator, rank, arity, auto_pad, weights)
        for rank in operator.ranks
        for arity in range(least, least + len(operator.optional) + 1)
        for auto_pad in ((False, True) if operator.windowed else (False,))
        for weights in (WEIGHTS if operator.weight is not None else (HWIO,))
    ]


KERNELS = {kernel.name: kernel for operator in OPERATORS for kernel in _kernels(operator)}
"""Every function by its name."""
