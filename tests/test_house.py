"""Rules of the house that the linters cannot state."""

from __future__ import annotations

from pathlib import Path

import pytest

import relayout
from tests.changes_of_graphs import changes_in

PACKAGE = Path(relayout.__file__).parent

MAY_CHANGE_GRAPHS = ("graph/editing", "graph/io")
"""Graphs are edited in the first of these rooms; the other makes them of files and files of
them."""

MODULES = sorted(PACKAGE.rglob("*.py"))

CHANGES = (
    "node.replace_input_with(0, value)",
    "value.replace_all_uses_with(other)",
    "result.shape = ir.Shape([1, 2])",
    "result.type, result.shape = known",
    "node.op_type = 'Relu'",
    "node.attributes['perm'] = attribute",
    "node.attributes.pop('perm')",
    "del model.functions[key]",
    "model.functions.pop(key)",
    "graph.initializers['w'] = value",
    "graph.register_initializer(value)",
    "region.graph.append(node)",
    "node.graph.remove(node)",
    "graph.outputs[0] = value",
    "inputs = graph.inputs\ninputs[0] = value",
    "graph.meta['note'] = 1",
    "node = ir.node('Relu', [value])",
    "value = ir.Value(name='y')",
)
"""Every way to change a graph that the package had outside its room, and some more."""


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_graph_is_seen(change: str) -> None:
    assert changes_in(change)


def test_only_the_editing_room_changes_graphs() -> None:
    texts = {
        str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8")
        for path in MODULES
        if not str(path.relative_to(PACKAGE)).startswith(MAY_CHANGE_GRAPHS)
    }
    found = {
        name: lines
        for name, text in texts.items()
        if "import onnx_ir" in text and (lines := changes_in(text))
    }
    assert found == {}
