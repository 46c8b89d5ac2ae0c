"""Convolutions: their operand is stored as batch, channels, spatial axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops import shuffles
from relayout.ops.facts import KnownLayout, LayoutFacts, NumberFacts, OpFacts, Storage
from relayout.ops.kernels import COMPLEX, KernelFacts, Role, WeightRule
from relayout.ops.kind import Kind
from relayout.ops.pointwise import convolution_as_product, fixed_axes, folded
from relayout.ops.rule import OpRule, TransportRule, barrier

if TYPE_CHECKING:
    from relayout.graph.read import NodeView
    from relayout.layout.permutation import Permutation

VECTORS = ("kernel_shape", "strides", "dilations", "output_padding", "output_shape")
"""Attributes with one entry per spatial axis."""


def spatial_changes(view: NodeView, order: Permutation) -> Changes | Refusal:
    """The attributes of a window for an order that keeps axes 0 and 1 in front."""
    spatial = order.drop((0, 1))
    attributes: dict[str, tuple[int, ...]] = {}
    for name in VECTORS:
        values = view.ints(name)
        if values is not None and len(values) != spatial.rank:
            return Refusal(f"{view.op_type} has a {name} that is not of the spatial axes alone")
        if values is not None:
            attributes[name] = spatial.reorder(values)
    pads = view.ints("pads")
    if pads is not None and len(pads) != 2 * spatial.rank:
        return Refusal(f"{view.op_type} has pads that are not two per spatial axis")
    if pads is not None:
        begins, ends = pads[: spatial.rank], pads[spatial.rank :]
        attributes["pads"] = (*spatial.reorder(begins), *spatial.reorder(ends))
    return Changes(attributes=attributes)


def with_weight(weight: int) -> TransportRule:
    """The rule of a convolution whose operand `weight` has two axes and then the spatial ones."""

    def convolution(view: NodeView, order: Permutation) -> Transport | Refusal:
        if not order.fixes(0, 1):
            return fixed_axes(view)
        changes = spatial_changes(view, order)
        if isinstance(changes, Refusal):
            return changes
        stored = {0, weight}
        inputs = tuple(order if index in stored else None for index in range(view.arity))
        return Transport(inputs, (order,) * view.results, changes)

    return convolution


def or_folded(weight: int) -> TransportRule:
    """A window of one element also runs where other axes are, or become, its batch."""
    whole = with_weight(weight)

    def convolution(view: NodeView, order: Permutation) -> Transport | Refusal:
        return whole(view, order) if order.fixes(0, 1) else folded(view, order, weight)

    return convolution


def conv(view: NodeView, order: Permutation) -> Transport | Refusal:
    """A window of one element also runs in orders in which it is a product of matrices."""
    if order.fixes(0, 1):
        return with_weight(1)(view, order)
    first, second = _pointwise(view, order)
    return second if isinstance(first, Refusal) else first


def _other_conv(view: NodeView, operand: int, order: Permutation) -> list[Transport]:
    """The other forms of a window of one element, at another price or with other rounding."""
    if operand != 0 or order.fixes(0, 1):
        return []
    _, second = _pointwise(view, order)
    return [second] if isinstance(second, Transport) else []


def _pointwise(
    view: NodeView, order: Permutation
) -> tuple[Transport | Refusal, Transport | Refusal]:
    """The two ways of a window of one element; at the same price the first is taken.

    With floats a product is several times as fast where there are few output channels. With bytes
    it stays a convolution, which runtimes have integer kernels for.
    """
    product, whole = convolution_as_product(view, order), folded(view, order, 1)
    return (whole, product) if view.constant(1) is None else (product, whole)


def _results_along(axis: int) -> WeightRule:
    """Where the channels are in groups, no axis of the weight has all results."""

    def results(view: NodeView) -> int | None:
        return axis if view.integer("group", 1) == 1 else None

    return results


def _convolving(weight: int, axes: str = "OI") -> LayoutFacts:
    return LayoutFacts(KnownLayout.CHANNELS_FIRST, (weight, axes))


FACTS: tuple[OpFacts, ...] = (
    OpFacts(
        ("Conv",),
        OpRule(conv, joint=_other_conv),
        kernel=KernelFacts(
            Kind.COMPLEX,
            role=Role.PRODUCT,
            streamed=(0, 1),
            weight_results=_results_along(0),
            pads=True,
        ),
        layout=_convolving(1),
        shuffles=shuffles.following(shuffles.convolution()),
        numbers=NumberFacts(sums_products=True, joins_quantisers=True),
        storage=Storage.PASSED,
    ),
    OpFacts(
        ("ConvTranspose",),
        OpRule(with_weight(1)),
        kernel=KernelFacts(
            Kind.COMPLEX,
            role=Role.PRODUCT,
            streamed=(0, 1),
            weight_results=_results_along(1),
        ),
        layout=_convolving(1, "IO"),
        shuffles=shuffles.following(shuffles.convolution(is_transposed=True)),
        numbers=NumberFacts(sums_products=True),
        storage=Storage.PASSED,
    ),
    OpFacts(
        ("ConvInteger",),
        OpRule(or_folded(1)),
        kernel=COMPLEX,
        layout=_convolving(1),
        shuffles=shuffles.following(shuffles.convolution(per_result=(3,))),
    ),
    OpFacts(
        ("QLinearConv",),
        OpRule(or_folded(3)),
        kernel=COMPLEX,
        layout=_convolving(3),
        shuffles=shuffles.following(shuffles.convolution(3, (4, 5, 8))),
        numbers=NumberFacts(quantises=True),
    ),
    OpFacts(
        ("DeformConv",),
        barrier("DeformConv interleaves the coordinates of its offsets in axis 1"),
        kernel=COMPLEX,
        layout=_convolving(1),
    ),
    OpFacts(
        ("CausalConvWithState",),
        barrier("CausalConvWithState keeps the end of the last axis as its state"),
        kernel=COMPLEX,
    ),
)
