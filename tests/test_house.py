"""Rules of the house that the linters cannot state."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
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


def test_no_two_classes_share_a_name() -> None:
    texts = (path.read_text(encoding="utf-8") for path in MODULES)
    counted = Counter(name for text in texts for name in _named_types(text))
    assert [name for name, count in counted.items() if count > 1] == []


def test_private_classes_and_aliases_are_types_too() -> None:
    text = "class _Port: ...\nif True:\n    Port: TypeAlias = int\ncount: int = 0\n"
    assert list(_named_types(text)) == ["Port", "Port"]


def _named_types(text: str) -> Iterator[str]:
    """The classes and the aliases of types that a module defines, without leading underscores."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            yield node.name.lstrip("_")
        elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
            yield ast.unparse(node.target).lstrip("_")
