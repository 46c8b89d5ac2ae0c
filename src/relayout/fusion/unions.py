"""Sets of vertices that grow into each other."""

from __future__ import annotations

from dataclasses import dataclass

from relayout.fusion.forward_graph import Vertex
from relayout.ops.kind import Kind


@dataclass(slots=True, eq=False)
class Union:
    """A vertex with what has been merged into it.

    A union that was merged into another keeps the facts it had then; the phases ask for these as
    well as for those of the whole (`find`).
    """

    root: Vertex
    """The vertex that all others lead to."""
    kind: Kind
    anchor: Vertex | None
    args: int
    size: int = 1
    parent: Union | None = None

    def find(self) -> Union:
        whole = self
        while whole.parent is not None:
            whole = whole.parent
        step = self
        while step.parent is not None:
            step.parent, step = whole, step.parent
        return whole

    def merge_into(self, other: Union) -> None:
        child, parent = self.find(), other.find()
        if child is parent:
            return
        parent.size += child.size
        parent.args += child.args
        child.parent = parent
        if child.anchor is None:
            return
        if parent.anchor is not None or min(child.kind, parent.kind) > Kind.BROADCAST:
            raise AssertionError("two complex operators would share a kernel")
        parent.anchor, parent.kind = child.anchor, max(child.kind, parent.kind)
