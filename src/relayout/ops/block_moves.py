"""DepthToSpace and SpaceToDepth between any orders, at the price of a Transpose."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from relayout.layout.block_move import MODES, BlockMove
from relayout.layout.blocks import Reshaping, Sizes, sizes_of
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops.rule import OpRule, Orders, barrier

if TYPE_CHECKING:
    from relayout.graph.read import NodeView

FIXED = "blocks of axes 2 and 3 are entries of the channel axis 1, in that order"


def as_transpose(view: NodeView, inputs: Orders, result: Permutation | None) -> Transport | Refusal:
    """A block move between two orders is a Reshape, a Transpose and a Reshape."""
    shape, block, mode = view.shape(0), view.integer("blocksize", 0), view.string("mode", "DCR")
    is_known = shape is not None and len(shape) == 4 and 0 not in shape
    if shape is None or not is_known or block < 1 or mode not in MODES:
        return Refusal(FIXED)
    given = sizes_of(shape, "source")
    order, wanted = inputs[0] or Permutation.identity(4), result or Permutation.identity(4)
    links = BlockMove(view.op_type, block, mode).between(given, order, wanted)
    if links is None:
        return Refusal(FIXED)
    split, perm, moved, merged = links
    into, back = _target(order.reorder(given), split), _target(moved, merged)
    if into is None or back is None:
        return Refusal(f"{view.op_type} has several lengths that are known only at run time")
    changes = Changes(
        {"blocksize": None, "mode": None, "perm": perm.axes},
        reshapes={0: into},
        result_reshapes={0: back},
        op_type="Transpose",
    )
    return Transport((order,), (wanted,), changes)


def _target(source: Sizes, result: Sizes) -> tuple[int, ...] | None:
    as_stored = Permutation.identity(len(source)), Permutation.identity(len(result))
    return Reshaping(source, result).target(*as_stored)


RULE: OpRule = replace(barrier(FIXED), separate=as_transpose)
