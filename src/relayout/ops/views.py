"""Operators whose results have the same elements in another shape or order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from relayout.graph.read import NodeView, Parameter, nonzero_lengths, perm_of, shape_of
from relayout.layout.blocks import UNIT, Block, Reshaping, Size, product, sizes_of
from relayout.layout.permutation import Permutation
from relayout.layout.shuffle import StoredOrder
from relayout.layout.shuffled_views import carry_entries, pull_entries
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops import axis_maps
from relayout.ops.facts import Evaluation, LengthFacts, NumberFacts, OpFacts
from relayout.ops.kernels import INJECTIVE, OPAQUE, KernelFacts, Role
from relayout.ops.kind import Kind
from relayout.ops.lengths import entries
from relayout.ops.named_axes import AXES, counted_from_front
from relayout.ops.rule import OpRule
from relayout.ops.shuffles import RESULT, ShuffleFacts

TARGET = Parameter("shape", 1)

ZEROS_SINCE = 14
"""From this opset on a target shape can have a length of 0."""


def as_given(view: NodeView, result: Permutation) -> Permutation | Refusal:
    """The result comes out as it was, whatever the order of the operand."""
    rank = view.rank(0)
    if rank is None or not result.is_identity:
        return Refusal(f"{view.op_type} gives its result in one order only")
    return Permutation.identity(rank)


def transpose(view: NodeView, order: Permutation) -> Transport | Refusal:
    perm = perm_of(view.node)
    if perm is None:
        return Refusal("Transpose has a perm that does not fit its operand")
    rest = order.inverse().then(perm)
    return Transport((order,), (None,), Changes(attributes={"perm": rest.axes}))


def shape(view: NodeView, order: Permutation) -> Transport:
    """The whole shape is read again in the given order.

    ONNX clamps `start` and `end` exactly as Python clamps the bounds of a slice.
    """
    attribute = view.node.attributes.get("end")
    end = None if attribute is None else attribute.as_int()
    axes = range(order.rank)[view.integer("start", 0) : end]
    changes = Changes(
        attributes={"start": None, "end": None},
        result_gathers={0: tuple(order.position(axis) for axis in axes)},
    )
    return Transport((order,), (None,), changes)


def size(_view: NodeView, order: Permutation) -> Transport:
    return Transport((order,), (None,))


def squeeze(view: NodeView, order: Permutation) -> Transport | Refusal:
    axes = _squeezed_axes(view, order.rank)
    if isinstance(axes, Refusal):
        return axes
    positions = sorted(order.position(axis) for axis in axes)
    given = AXES.read(view) is not None
    changes = AXES.write(view, positions) if given else Changes()
    return _reshaped(view, order, order.drop(axes), changes)


def pull_squeeze(view: NodeView, result: Permutation) -> Permutation | Refusal:
    axes = _squeezed_axes(view, view.rank(0))
    if isinstance(axes, Refusal):
        return axes
    if view.rank(0) != result.rank + len(axes):
        return Refusal(f"{view.op_type} does not leave {result.rank} axes")
    return result.insert(axes)


def _squeezed_axes(view: NodeView, rank: int | None) -> tuple[int, ...] | Refusal:
    axes = AXES.read_ints(view)
    if isinstance(axes, Refusal):
        return axes
    dims = view.shape(0)
    if rank is None or dims is None:
        return Refusal("the rank of Squeeze's operand is unknown")
    if axes is not None:
        return counted_from_front(axes, rank)
    if not all(isinstance(dim, int) for dim in dims):
        return Refusal("Squeeze names no axes and not every length is known")
    return tuple(axis for axis, dim in enumerate(dims) if dim == 1)


def unsqueeze(view: NodeView, order: Permutation) -> Transport | Refusal:
    axes = _unsqueezed_axes(view)
    if isinstance(axes, Refusal):
        return axes
    return _reshaped(view, order, order.insert(axes))


def pull_unsqueeze(view: NodeView, result: Permutation) -> Permutation | Refusal:
    axes = _unsqueezed_axes(view)
    if isinstance(axes, Refusal):
        return axes
    if not result.fixes(*axes):
        return Refusal("Unsqueeze's new axes are stored elsewhere in this order")
    return result.drop(axes)


def _unsqueezed_axes(view: NodeView) -> tuple[int, ...] | Refusal:
    axes, rank = AXES.read_ints(view), view.rank(0)
    if isinstance(axes, Refusal):
        return axes
    if axes is None or rank is None:
        return Refusal("the axes or the rank of Unsqueeze are unknown")
    found = counted_from_front(axes, rank + len(axes))
    if len(found) != len(axes):
        return Refusal("Unsqueeze names an axis twice")
    return found


def flatten(view: NodeView, order: Permutation) -> Transport | Refusal:
    """Flatten again, at the place where the axes of the first group end."""
    given = _flattening(view)
    if isinstance(given, Refusal):
        return given
    carried = given.carry(order)
    if isinstance(carried, Block):
        return _torn(view, carried)
    end = _flattened_at(view, given, order, carried[0])
    return _reshaped(view, order, carried, Changes(attributes={"axis": end}))


def pull_flatten(view: NodeView, result: Permutation) -> Permutation | Refusal:
    return _pulled(view, _flattening(view), result)


def _flattening(view: NodeView) -> Reshaping | Refusal:
    source = _source(view)
    if isinstance(source, Refusal):
        return source
    axis = _flatten_axis(view, len(source))
    return Reshaping(source, (product(source[:axis]), product(source[axis:])))


def _flatten_axis(view: NodeView, rank: int) -> int:
    axis = view.integer("axis", 1)
    return axis + rank if axis < 0 else axis


def reshape(view: NodeView, order: Permutation) -> Transport | Refusal:
    given = _reshaping(view)
    if isinstance(given, Refusal):
        return given
    carried = given.carry(order)
    if isinstance(carried, Block):
        return _torn(view, carried)
    changes = _target(view, given, order, carried)
    if isinstance(changes, Refusal):
        return changes
    return _reshaped(view, order, carried, changes)


def _target(
    view: NodeView, given: Reshaping, order: Permutation, carried: Permutation
) -> Changes | Refusal:
    """A constant target where that determines the shape, else one computed at run time."""
    target = given.target(order, carried)
    if target is not None:
        shape_operand = {1: np.asarray(target, np.int64)}
        return Changes(attributes={"allowzero": None}, constants=shape_operand)
    if not TARGET.is_operand(view):
        return Refusal("Reshape before opset 5 takes a constant shape, which cannot state this one")
    lengths = given.lengths(order, carried)
    if lengths is None:
        return Refusal("Reshape would take lengths in this order that no axis has")
    if view.version >= ZEROS_SINCE:
        return Changes(attributes={"allowzero": 1}, lengths={1: lengths})
    if given.open_symbols:
        return Refusal("Reshape before opset 14 could not give an empty result in this order")
    return Changes(lengths={1: lengths})


def pull_reshape(view: NodeView, result: Permutation) -> Permutation | Refusal:
    return _pulled(view, _reshaping(view), result)


def _reshaping(view: NodeView) -> Reshaping | Refusal:
    source, target = _source(view), TARGET.read_ints(view)
    if isinstance(source, Refusal):
        return source
    if isinstance(target, tuple):
        return _to_target(view, source, target)
    dims = shape_of(view.node.outputs[0])
    if dims is None or 0 in dims:
        return Refusal("Reshape gets its shape at run time")
    return Reshaping(source, sizes_of(dims, "result"), nonzero_lengths(view.node))


def _to_target(
    view: NodeView, source: tuple[Size, ...], target: tuple[int, ...]
) -> Reshaping | Refusal:
    if 0 in target[len(source) :]:
        return Refusal("Reshape copies the length of an axis that its operand does not have")
    if 0 in target and view.integer("allowzero", 0):
        return Refusal("Reshape has a result without elements")
    given, nonzero = Reshaping.to_target(source, target), nonzero_lengths(view.node)
    return replace(given, nonzero=given.nonzero | nonzero) if nonzero else given


def _source(view: NodeView) -> tuple[Size, ...] | Refusal:
    dims = view.shape(0)
    if dims is None:
        return Refusal(f"the rank of {view.op_type}'s operand is unknown")
    if 0 in dims:
        return Refusal(f"{view.op_type} has an operand without elements")
    return sizes_of(dims, "source")


def _shuffles(
    reshaping: Callable[[NodeView], Reshaping | Refusal],
    restated: Callable[[NodeView, Reshaping, StoredOrder, StoredOrder], Changes | None],
) -> ShuffleFacts:
    """Axes that are merged or split in another order than the model describes."""

    def rule(view: NodeView, orders: Mapping[int, StoredOrder]) -> Sequence[Transport]:
        ((port, order),) = orders.items()
        given = reshaping(view)
        if isinstance(given, Refusal) or port not in {0, RESULT}:
            return ()
        source = pull_entries(given, order) if port == RESULT else order
        result = order if port == RESULT else carry_entries(given, order)
        if source is None or result is None:
            return ()
        changes = restated(view, given, source, result)
        others = (None,) * (view.arity - 1)
        return () if changes is None else (Transport((source, *others), (result,), changes),)

    return ShuffleFacts(rule)


def _reshaped_entries(
    _view: NodeView, given: Reshaping, source: StoredOrder, result: StoredOrder
) -> Changes | None:
    target = given.target(_axes_of(source), _axes_of(result))
    if target is None:
        return None
    return Changes(attributes={"allowzero": None}, constants={1: np.asarray(target, np.int64)})


def _flattened_entries(
    view: NodeView, given: Reshaping, source: StoredOrder, _result: StoredOrder
) -> Changes | None:
    return Changes(attributes={"axis": _flattened_at(view, given, _axes_of(source))})


def _axes_of(order: StoredOrder) -> Permutation:
    return order if isinstance(order, Permutation) else Permutation.identity(order.rank)


def _flattened_at(view: NodeView, given: Reshaping, order: Permutation, first: int = 0) -> int:
    """Where the axes that become the first one end, or those of the second if that comes first."""
    axis = _flatten_axis(view, order.rank)
    group = range(axis) if first == 0 else range(axis, order.rank)
    wide = [axis for axis in group if given.source[axis] != UNIT]
    return max((order.position(axis) + 1 for axis in wide), default=0)


def _pulled(
    view: NodeView, given: Reshaping | Refusal, result: Permutation
) -> Permutation | Refusal:
    if isinstance(given, Refusal):
        return given
    order = given.pull(result)
    return _torn(view, order) if isinstance(order, Block) else order


def _torn(view: NodeView, block: Block) -> Refusal:
    """The block has more than one axis on the side that is stored apart."""
    if not block.source:
        return Refusal(f"{view.op_type} gives a scalar axes of which no length is known")
    if len(block.source) == 1:
        return Refusal(
            f"{view.op_type} splits {_named(block.source)} into {_named(block.result)}, "
            "which this order stores apart"
        )
    verb = "merges" if len(block.result) == 1 else "regroups"
    return Refusal(f"{view.op_type} {verb} {_named(block.source)}, which this order stores apart")


def _named(axes: tuple[int, ...]) -> str:
    if len(axes) == 1:
        return f"axis {axes[0]}"
    return f"axes {', '.join(map(str, axes[:-1]))} and {axes[-1]}"


def _reshaped(
    view: NodeView, order: Permutation, result: Permutation, changes: Changes | None = None
) -> Transport:
    """Only the first operand has an order, and the result one of another rank."""
    return Transport((order, *(None,) * (view.arity - 1)), (result,), changes or Changes())


def _written_order(view: NodeView) -> tuple[int, ...] | None:
    order = perm_of(view.node)
    return None if order is None else order.axes


def _reshaping_kernel(kind: Kind, shaping: tuple[int, ...] = ()) -> KernelFacts:
    return KernelFacts(kind, shaping=shaping, role=Role.VIEW, is_view=True, is_exact=True)


MOVES = NumberFacts(Evaluation.MOVES)
INTEGERS = NumberFacts(Evaluation.INTEGERS)
SAME_ENTRIES = LengthFacts(entries.same, is_shaped_by_constants=True)

FACTS: tuple[OpFacts, ...] = (
    OpFacts(
        ("Transpose",),
        OpRule(transpose, as_given),
        kernel=KernelFacts(Kind.INJECTIVE, move=_written_order, is_exact=True),
        axes=axis_maps.transposed,
        numbers=MOVES,
    ),
    OpFacts(
        ("Shape",),
        OpRule(shape, as_given),
        kernel=OPAQUE,
        lengths=LengthFacts(entries.whole_shape),
        numbers=INTEGERS,
    ),
    OpFacts(("Size",), OpRule(size, as_given), kernel=INJECTIVE, numbers=INTEGERS),
    OpFacts(
        ("Squeeze",),
        OpRule(squeeze, pull_squeeze),
        kernel=_reshaping_kernel(Kind.INJECTIVE, (1,)),
        lengths=SAME_ENTRIES,
        numbers=MOVES,
    ),
    OpFacts(
        ("Unsqueeze",),
        OpRule(unsqueeze, pull_unsqueeze),
        kernel=_reshaping_kernel(Kind.BROADCAST, (1,)),
        lengths=SAME_ENTRIES,
        numbers=MOVES,
    ),
    OpFacts(
        ("Flatten",),
        OpRule(flatten, pull_flatten),
        kernel=_reshaping_kernel(Kind.INJECTIVE),
        shuffles=_shuffles(_flattening, _flattened_entries),
        numbers=MOVES,
    ),
    OpFacts(
        ("Reshape",),
        OpRule(reshape, pull_reshape),
        kernel=_reshaping_kernel(Kind.INJECTIVE, (1,)),
        shuffles=_shuffles(_reshaping, _reshaped_entries),
        lengths=LengthFacts(
            entries.same,
            entries.reshaped,
            divisors=entries.divisors,
            is_shaped_by_constants=True,
        ),
        numbers=MOVES,
    ),
)
