"""Operators that read or write at given indices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops import axis_maps
from relayout.ops.axis import all_alike
from relayout.ops.facts import Evaluation, LengthFacts, NumberFacts, OpFacts
from relayout.ops.kernels import INJECTIVE, OPAQUE, KernelFacts
from relayout.ops.kind import Kind
from relayout.ops.lengths import entries
from relayout.ops.named_axes import moved_axis
from relayout.ops.reduction import restored
from relayout.ops.rule import OpRule, barrier

if TYPE_CHECKING:
    from relayout.graph.read import NodeView
    from relayout.layout.permutation import Permutation


def elements(view: NodeView, order: Permutation) -> Transport | Refusal:
    """The indices and the updates have the axes of the data."""
    return all_alike(view, order, moved_axis(view, order, 0))


def tensor_scatter(view: NodeView, order: Permutation) -> Transport | Refusal:
    if not order.fixes(0):
        return Refusal("TensorScatter has its batch in axis 0")
    inputs = (order, order, *(None,) * (view.arity - 2))
    return Transport(inputs, (order,), moved_axis(view, order, -2))


def gather(view: NodeView, order: Permutation) -> Transport | Refusal:
    """The axes of the indices take the place of the axis that is read."""
    count = view.rank(1)
    if count is None:
        return Refusal("the rank of Gather's indices is unknown")
    result = order.replace(view.integer("axis", 0) % order.rank, count)
    return Transport((order, None), (result,), moved_axis(view, order, 0))


def pull_gather(view: NodeView, result: Permutation) -> Permutation | Refusal:
    rank, count = view.rank(0), view.rank(1)
    if rank is None or count is None or rank - 1 + count != result.rank:
        return Refusal(f"the result of Gather is not known to have {result.rank} axes")
    axis = view.integer("axis", 0) % rank
    if count == 0:
        return restored(result, (axis,))
    order = result.drop(range(axis + 1, axis + count))
    if order.replace(axis, count) != result:
        return Refusal("Gather keeps the axes of its indices together")
    return order


@dataclass(frozen=True, slots=True)
class Lookup:
    """Which axes of the data the index tuples of GatherND and ScatterND index."""

    batch: int
    """Leading axes that data and indices share."""
    width: int
    """Axes after them that an index tuple names."""
    outer: int
    """Axes of the indices, without the tuples themselves."""

    @property
    def named(self) -> range:
        return range(self.batch, self.batch + self.width)

    def admits(self, order: Permutation) -> bool:
        return order.fixes(*range(self.batch)) and order.keeps(self.named)

    def columns(self, order: Permutation) -> tuple[int, ...]:
        """Where each entry of a tuple is read from when the data is stored in `order`."""
        return tuple(order[axis] - self.batch for axis in self.named)

    def slices(self, order: Permutation) -> Permutation:
        """The order of what the tuples find: the axes of the indices, then those not named."""
        return order.drop(range(self.named.stop)).insert(range(self.outer))

    def pull(self, slices: Permutation) -> Permutation:
        """The order of the data, its named axes in place, that gives this order of `slices`."""
        return slices.drop(range(self.outer)).insert(range(self.named.stop))


def lookup_of(view: NodeView) -> Lookup | Refusal:
    shape = view.shape(1)
    if not shape or not isinstance(shape[-1], int):
        return Refusal(f"the length of {view.op_type}'s index tuples is unknown")
    return Lookup(view.integer("batch_dims", 0), shape[-1], len(shape) - 1)


def gather_nd(view: NodeView, order: Permutation) -> Transport | Refusal:
    lookup = lookup_of(view)
    if isinstance(lookup, Refusal):
        return lookup
    changes = _moved_columns(view, lookup, order)
    if isinstance(changes, Refusal):
        return changes
    return Transport((order, None), (lookup.slices(order),), changes)


def pull_gather_nd(view: NodeView, result: Permutation) -> Permutation | Refusal:
    rank, lookup = view.rank(0), lookup_of(view)
    if isinstance(lookup, Refusal):
        return lookup
    if rank is None or rank - lookup.named.stop + lookup.outer != result.rank:
        return Refusal(f"the result of GatherND is not known to have {result.rank} axes")
    if not result.fixes(*range(lookup.outer)):
        return Refusal("GatherND puts the axes of its indices first")
    return lookup.pull(result)


def scatter_nd(view: NodeView, order: Permutation) -> Transport | Refusal:
    lookup = lookup_of(view)
    if isinstance(lookup, Refusal):
        return lookup
    changes = _moved_columns(view, lookup, order)
    if isinstance(changes, Refusal):
        return changes
    return Transport((order, None, lookup.slices(order)), (order,), changes)


def one_hot(view: NodeView, order: Permutation) -> Transport:
    """The new axis stays at its place in the result."""
    result = order.insert((_new_axis(view, order.rank + 1),))
    return Transport((order, None, None), (result,))


def pull_one_hot(view: NodeView, result: Permutation) -> Permutation | Refusal:
    axis = _new_axis(view, result.rank)
    if not result.fixes(axis):
        return Refusal("OneHot puts its new axis at a fixed place")
    return result.drop((axis,))


def _new_axis(view: NodeView, result_rank: int) -> int:
    return view.integer("axis", -1) % result_rank


def _moved_columns(view: NodeView, lookup: Lookup, order: Permutation) -> Changes | Refusal:
    if not lookup.admits(order):
        return Refusal(f"{view.op_type}'s index tuples name the first axes of its data")
    columns = lookup.columns(order)
    if columns == tuple(range(lookup.width)):
        return Changes()
    indices = view.constant(1)
    if indices is not None:
        return Changes(constants={1: indices[..., list(columns)]})
    if lookup.outer == 0:
        return Changes(gathers={1: columns})
    return Refusal(f"{view.op_type} gets its indices at run time")


MOVES = NumberFacts(Evaluation.MOVES)
INTEGERS = NumberFacts(Evaluation.INTEGERS)

FACTS: tuple[OpFacts, ...] = (
    OpFacts(
        ("Gather",),
        OpRule(gather, pull_gather),
        kernel=INJECTIVE,
        axes=axis_maps.gather,
        lengths=LengthFacts(entries.gathered),
        numbers=MOVES,
    ),
    OpFacts(("GatherElements",), OpRule(elements), kernel=INJECTIVE, numbers=INTEGERS),
    OpFacts(("Scatter", "ScatterElements"), OpRule(elements), kernel=OPAQUE, numbers=INTEGERS),
    OpFacts(("GatherND",), OpRule(gather_nd, pull_gather_nd), kernel=INJECTIVE, numbers=MOVES),
    OpFacts(("ScatterND",), OpRule(scatter_nd), kernel=OPAQUE, numbers=MOVES),
    OpFacts(("TensorScatter",), OpRule(tensor_scatter), kernel=OPAQUE),
    OpFacts(
        ("OneHot",),
        OpRule(one_hot, pull_one_hot),
        kernel=KernelFacts(Kind.COMPLEX, shaping=(1,)),
        lengths=LengthFacts(is_shaped_by_constants=True),
        numbers=INTEGERS,
    ),
    OpFacts(("NonZero",), barrier("NonZero lists what it finds in element order"), kernel=OPAQUE),
)
