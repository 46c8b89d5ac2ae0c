"""All lowerings by domain and operator."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from relayout.errors import RelayoutError
from relayout.graph.region import subgraphs_of
from relayout.targets.torch.call import Lowering
from relayout.targets.torch.lower import activation, elementwise

FAMILIES = (activation, elementwise)

LOWERINGS: dict[tuple[str, str], Lowering] = {
    ("", op_type): lowering for family in FAMILIES for op_type, lowering in family.LOWERINGS.items()
}


def check_lowerings(model: ir.Model) -> None:
    """Refuse a model with operators that nobody wrote a lowering for; all of them are named."""
    missing = dict.fromkeys(
        f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        for node in _nodes(model.graph)
        if (_domain(node), node.op_type) not in LOWERINGS
    )
    if missing:
        raise RelayoutError(f"torch has no lowering of {', '.join(sorted(missing))}")


def _domain(node: ir.Node) -> str:
    return "" if node.domain == "ai.onnx" else node.domain


def _nodes(graph: ir.Graph) -> Iterator[ir.Node]:
    for node in graph:
        yield node
        for body in subgraphs_of(node):
            yield from _nodes(body)
