"""DepthToSpace and SpaceToDepth: taken into the chains around them, and found again in others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import schema_of
from relayout.layout.block_move import BLOCK_MOVES, BlockMove
from relayout.layout.strided_view import View
from relayout.rewrite.chains import Chain, chains_through, shorten_chain
from relayout.rewrite.links import VIEWS, dims_of
from relayout.rewrite.worklist import consumers

WITH_KERNELS = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
"""The element types for which common runtimes have these operators."""

DEFAULT_MODE = "DCR"


@dataclass(frozen=True, slots=True)
class TakeInBlockMove:
    """A block move among views is one of them, where fewer operators are left that move data.

    Given:  a = Transpose<perm=[0,3,1,2]>(x); b = DepthToSpace<blocksize=2>(a);
            y = Transpose<perm=[0,2,3,1]>(b)
    Result: a = Reshape(x, [...]); b = Transpose<perm=[...]>(a); y = Reshape(b, [...])

    Never with more Transposes than before.
    """

    name: str = "take a block move into a chain of views"
    op_types: tuple[str, ...] = BLOCK_MOVES

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        return shorten_chain(node, (*VIEWS, *BLOCK_MOVES), editor)


@dataclass(frozen=True, slots=True)
class FindBlockMove:
    """Reshape, Transpose, Reshape that move blocks of pixels are the operator that does so.

    Given:  a = Reshape(x, [0,3,2,2,8,8]); b = Transpose<perm=[0,1,4,2,5,3]>(a);
            y = Reshape(b, [0,3,16,16])
    Result: y = DepthToSpace<blocksize=2, mode="CRD">(x)

    For the end: no Transpose passes the operator.
    """

    name: str = "find a block move"
    op_types: tuple[str, ...] = ("Transpose",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        for chain in chains_through(node, VIEWS, editor):
            move = _found(chain, editor)
            if move is not None and node in chain.nodes:
                return _replace(chain, move, editor)
        return None


def _found(chain: Chain, editor: Editor) -> BlockMove | None:
    if len(chain.nodes) == 1 or chain.source.dtype not in WITH_KERNELS:
        return None
    view = View.along(chain.sizes, chain.links)
    if view is None or not view.moves:
        return None
    moves = (move for move in _candidates(view) if _is_defined(move, editor.region.version))
    return next((move for move in moves if _does(move, view)), None)


def _candidates(view: View) -> Iterator[BlockMove]:
    """The block is one of the axes between which elements move."""
    blocks = {mode.size.number for mode in view.modes if not mode.size.symbols}
    for block in sorted(blocks):
        for op_type in BLOCK_MOVES:
            yield from (BlockMove(op_type, block, mode) for mode in (DEFAULT_MODE, "CRD"))


def _is_defined(move: BlockMove, version: int) -> bool:
    """Whether the operator of this opset version knows the mode."""
    schema = schema_of(move.op_type, version)
    return schema is not None and (move.mode == DEFAULT_MODE or "mode" in schema.attributes)


def _does(move: BlockMove, view: View) -> bool:
    links = move.links(view.source)
    return links is not None and View.along(view.source, links) == view


def _replace(chain: Chain, move: BlockMove, editor: Editor) -> list[ir.Node]:
    last, result = chain.nodes[-1], chain.result
    mode = None if move.mode == DEFAULT_MODE else move.mode
    moved = editor.add(
        move.op_type,
        [chain.source],
        {"blocksize": move.block, "mode": mode},
        before=last,
        hint=f"{result.name}_moved",
        like=result,
        shape=ir.Shape(dims_of(chain.readings[-1].shape)),
        origin=chain.nodes,
    )
    touched = consumers(result)
    editor.substitute(result, moved, origin=last)
    editor.discard(last)
    return touched
