"""Along which axes the rows lie that an operator reduces or normalises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayout.graph.read import NodeView
from relayout.graph.region import KERNEL_DOMAIN
from relayout.layout.transport import Refusal
from relayout.ops.named_axes import AXES, SOFTMAX_OF_ONE_AXIS

if TYPE_CHECKING:
    from relayout.ops.kernels import RowsRule


def spatial(view: NodeView, rank: int) -> tuple[int, ...]:
    """All axes but batch and channels."""
    is_last = view.node.domain == KERNEL_DOMAIN
    return tuple(range(1, rank - 1)) if is_last else tuple(range(2, rank))


def reduced(view: NodeView, rank: int) -> tuple[int, ...] | None:
    given = AXES.read_ints(view)
    if isinstance(given, Refusal):
        return None
    if not given:
        return None if view.integer("noop_with_empty_axes", 0) else tuple(range(rank))
    return _placed(given, rank)


def along(default: int) -> RowsRule:
    """The axis that the attribute `axis` names."""

    def rows(view: NodeView, rank: int) -> tuple[int, ...] | None:
        return _placed((view.integer("axis", default),), rank)

    return rows


def trailing(view: NodeView, rank: int) -> tuple[int, ...] | None:
    """All axes from `axis` on."""
    return _from(view.integer("axis", -1), rank)


def softmax(view: NodeView, rank: int) -> tuple[int, ...] | None:
    """One axis; in early versions all axes from one on."""
    if view.version < SOFTMAX_OF_ONE_AXIS:
        return _from(view.integer("axis", 1), rank)
    return _placed((view.integer("axis", -1),), rank)


def _from(axis: int, rank: int) -> tuple[int, ...] | None:
    first = _placed((axis,), rank)
    return tuple(range(first[0], rank)) if first else first


def _placed(axes: tuple[int, ...], rank: int) -> tuple[int, ...] | None:
    """Axes counted from the front; None if one is not there."""
    if any(not -rank <= axis < rank for axis in axes):
        return None
    return tuple(sorted({axis % rank for axis in axes}))
