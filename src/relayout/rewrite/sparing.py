"""Rewrites that leave alone the nodes which are to stay as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.rewrite.worklist import Rewrite
from relayout.targets.gate import Gate


@dataclass(frozen=True, slots=True)
class Sparing:
    """A rewrite of the nodes that a gate does not keep."""

    gate: Gate
    rewrite: Rewrite

    @property
    def name(self) -> str:
        return self.rewrite.name

    @property
    def op_types(self) -> tuple[str, ...]:
        return self.rewrite.op_types

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        is_kept = self.gate.keeps(editor.region.view(node))
        return None if is_kept else self.rewrite.apply(node, editor)


def sparing(gate: Gate, *rewrites: Rewrite) -> Sequence[Rewrite]:
    """These rewrites, of which none restates a node that the gate keeps."""
    return tuple(Sparing(gate, each) for each in rewrites) if gate else rewrites
