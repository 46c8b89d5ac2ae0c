"""Drafts for the borders of the bodies of one node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import onnx_ir as ir

from relayout.assign.drafts import DemandDraft, Draft, TieDraft
from relayout.assign.frames import Frame
from relayout.graph.read import NodeView, constant_of
from relayout.graph.region import subgraphs_of
from relayout.ops.bodies import ties_of
from relayout.ops.control import Border, Side, Tie, body_borders, borders


def border_drafts(view: NodeView, frame_of: Callable[[ir.Value], Frame]) -> Iterator[Draft]:
    """One draft per tie, and one for everything that is read as given."""
    node, tied = view.node, set[Border]()
    for tie in ties_of(view):
        reads = _reads(tie, frame_of)
        if reads is None:
            continue
        tied.update(tie.reads)
        operands = [tie.reads[index] for index in reads]
        results = [frame_of(border.value) for border in tie.writes]
        yield TieDraft(node, *_framed(operands, frame_of), results, tie, reads)
    inside = [border for body in subgraphs_of(node) for border in body_borders(body, Side.OUTPUT)]
    given = [*borders(node, Side.OPERAND), *inside]
    others = [b for b in given if b not in tied and constant_of(b.value) is None]
    if others:
        yield DemandDraft(node, *_framed(others, frame_of), [])


def _framed(
    read: Sequence[Border], frame_of: Callable[[ir.Value], Frame]
) -> tuple[list[Frame], list[ir.Graph]]:
    return [frame_of(border.value) for border in read], [border.graph for border in read]


def _reads(tie: Tie, frame_of: Callable[[ir.Value], Frame]) -> tuple[int, ...] | None:
    """Which values a tie has to read; None if it transposes what it carries in every run.

    Constants follow for nothing, and so does a value that a body gives back as it came.
    """
    written = {border.value for border in tie.writes}
    found = []
    for index, border in enumerate(tie.reads):
        if constant_of(border.value) is not None:
            continue
        frame = frame_of(border.value)
        if frame.tensor not in written:
            found.append(index)
        elif frame.view is None or not frame.view.is_identity:
            return None
    return tuple(found)
