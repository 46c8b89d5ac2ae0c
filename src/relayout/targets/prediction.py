"""How long what moves data in a model takes on a target, by the prices of the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import onnx_ir as ir

from relayout.graph.read import constant_of, is_op, perm_of, shape_of
from relayout.graph.region import Region, regions_of
from relayout.layout.moves import Move
from relayout.layout.transport import AS_GIVEN
from relayout.ops.measure import (
    Measure,
    bytes_inside,
    bytes_of_move,
    item_bytes,
    lengths_of,
    measure,
    moving_transposes,
    runs_of,
)
from relayout.ops.registry import facts_of
from relayout.targets.ort_attention import copies_price
from relayout.targets.prices.table import RuntimePrices
from relayout.targets.products import form_price
from relayout.targets.profiles.profile import Profile
from relayout.targets.reductions import reduction_price
from relayout.targets.resized_products import enlarged_price
from relayout.targets.target import Target
from relayout.targets.transpose_prices import (
    FLATTEN_TAKES_ANY_TYPE,
    is_better_kept,
    least_price,
)


def measure_on(
    target: Target, model: ir.Model, dims: Mapping[str, int], *, rewritten: bool = False
) -> Measure:
    """How much data a model moves, and how long that takes if the target has prices.

    The bytes of Transposes that a device with limits runs elsewhere count more often.
    `rewritten`: whether slow Transposes count as they will be written, in the way that takes least.
    """
    found = measure(model, dims)
    if target.profile is not None and target.profile.limits_transposes:
        elsewhere = _bytes_elsewhere(target.profile, model, dims)
        found = replace(found, bytes_moved=found.bytes_moved + elsewhere)
    if target.prices is None:
        return found
    return replace(found, nanoseconds=Prediction(target, target.prices, dims, rewritten).of(model))


def _bytes_elsewhere(profile: Profile, model: ir.Model, dims: Mapping[str, int]) -> int:
    """What is added for Transposes that a device does not run itself."""
    runs = runs_of(list(regions_of(model)))
    return sum(
        runs[region.graph] * (_times(profile, node) - 1) * bytes_of_move(node, dims)
        for region, node in moving_transposes(model)
    )


def _times(profile: Profile, node: ir.Node) -> int:
    order, lengths = perm_of(node), shape_of(node.inputs[0])
    if order is None or lengths is None:
        return 1
    return profile.times(lengths, order)


@dataclass(frozen=True, slots=True)
class Prediction:
    """Adds up what depends on the order of axes: kernels that are started, and data they move."""

    target: Target
    prices: RuntimePrices
    dims: Mapping[str, int]
    rewritten: bool

    def of(self, model: ir.Model) -> int:
        """Nanoseconds of all graphs of a model."""
        regions = list(regions_of(model))
        runs = runs_of(regions)
        return sum(runs[region.graph] * self._graph(region) for region in regions)

    def _graph(self, region: Region) -> int:
        absorbed = self.target.absorbed(region.graph)
        running = (node for node in region.graph if node not in absorbed)
        return sum(self._node(region, node) for node in running)

    def _node(self, region: Region, node: ir.Node) -> int:
        if all(constant_of(value) is not None for value in node.inputs if value is not None):
            return 0
        if is_op(node, "Transpose"):
            return self._transpose(region, node)
        view, inside = region.view(node), 0
        if facts_of(node).copies is not None:
            inside = self.prices.turned(bytes_inside(view, self.dims))
        inside += copies_price(view, self.prices, self.dims)
        inside += self.target.extra_price(view, self.prices, self.dims)
        inside += reduction_price(view, None, self.prices, self.dims)
        inside += enlarged_price(view, self.prices, self.dims)
        parted = self.target.parted(view, None)
        inside += 0 if parted is None else parted.nanoseconds(self.prices, self.dims)
        return self.prices.node + inside + form_price(view, AS_GIVEN, self.prices, self.dims)

    def _transpose(self, region: Region, node: ir.Node) -> int:
        source, order = node.inputs[0], perm_of(node)
        shape = None if source is None else shape_of(source)
        if source is None or order is None or shape is None or len(shape) != order.rank:
            return self.prices.node
        if source.dtype is None:
            return self.prices.node
        size = item_bytes(source.dtype)
        if self.rewritten and region.version >= FLATTEN_TAKES_ANY_TYPE:
            is_kept = self.target.moves_transposes and is_better_kept(node, self.prices, self.dims)
            views = 2 * self.prices.view() if is_kept else 0
            return views + least_price(self.prices, shape, order, size, self.dims)
        return self.prices.transpose(Move.of(lengths_of(shape, self.dims), order), size)
