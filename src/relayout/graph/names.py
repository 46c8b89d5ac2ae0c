"""Names for new values and nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx_ir as ir

from relayout.graph.region import regions_of


@dataclass(slots=True)
class Names:
    """The names in use, so that a new one never clashes in any scope."""

    taken: set[str] = field(default_factory=set)
    heirs: dict[ir.Node, ir.Node] = field(default_factory=dict)
    """By node, the one that stands for it and gets its name once it is gone."""

    @classmethod
    def of(cls, model: ir.Model) -> Names:
        names = cls()
        for region in regions_of(model):
            names._collect(region.graph)
        return names

    def fresh(self, hint: str) -> str:
        name, count = hint, 0
        while name in self.taken:
            count += 1
            name = f"{hint}_{count}"
        self.taken.add(name)
        return name

    def promise(self, node: ir.Node, heir: ir.Node) -> None:
        """Let `heir` have the name of a node when that goes; of several heirs the first has it."""
        self.heirs.setdefault(node, heir)

    def heir(self, gone: ir.Node) -> ir.Node | None:
        """Who gets the name of a node that was removed: its heir or, if that went too, the next."""
        heir = self.heirs.get(gone)
        while heir is not None and heir.graph is None:
            heir = self.heirs.get(heir)
        return heir

    def _collect(self, graph: ir.Graph) -> None:
        nodes = list(graph)
        self.taken.update([value.name or "" for value in graph.inputs])
        self.taken.update(graph.initializers)
        self.taken.update([node.name or "" for node in nodes])
        self.taken.update([value.name or "" for node in nodes for value in node.outputs])
