"""Rules of the house that the linters cannot state."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import relayout
from relayout.assign.strategies.registry import STRATEGIES
from relayout.targets.target import TARGETS
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


NAMES = frozenset((*TARGETS, *STRATEGIES)) - {"onnx"}
"""Names of targets and strategies; onnx is also the name of a format."""

COMPARISONS = (
    "if target.name == 'x': pass",
    "if self.terms.target.name != other: pass",
    "is_given = chosen in (strategy.name, 'x')",
    "if runtime.name in names: pass",
    "rule = RULES[target.name]",
    "rule = RULES.get(target.name)",
    "if way == 'ort': pass",
    "if way in ('preset', 'preset-plus'): pass",
    "match target.name:\n    case 'x': pass",
    "match way:\n    case 'greedy' | 'x': pass",
    "is_last = target.name.startswith('x')",
)
"""Ways to go by the name of a target or a strategy instead of its fields."""


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_going_by_a_name_is_seen(comparison: str) -> None:
    assert list(_goes_by_name(comparison))


def test_showing_a_name_is_no_comparison() -> None:
    shown = "text = f'{target.name}'\nrecord = Record(strategy.name)\nall = {target.name: target}"
    assert not list(_goes_by_name(shown))


def test_what_a_target_or_strategy_can_are_its_fields_and_never_its_name() -> None:
    found = {
        str(path.relative_to(PACKAGE)): names
        for path in MODULES
        if (names := list(_goes_by_name(path.read_text(encoding="utf-8"))))
    }
    assert found == {}


def _goes_by_name(text: str) -> Iterator[str]:
    """The names of targets, strategies and runtimes that something is decided by."""
    for node in ast.walk(ast.parse(text)):
        yield from (ast.unparse(each) for each in _deciding(node) if _is_such_a_name(each))


def _deciding(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that a comparison, a lookup or a question to a string depends on."""
    match node:
        case ast.Compare():
            for side in (node.left, *node.comparators):
                yield from side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side]
        case ast.Match():
            yield node.subject
        case ast.MatchValue():
            yield node.value
        case ast.Subscript():
            yield node.slice
        case ast.Call(func=ast.Attribute(attr="get"), args=[key, *_]):
            yield key
        case ast.Call(func=ast.Attribute(value=value, attr="startswith" | "endswith")):
            yield value


def _is_such_a_name(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value in NAMES
    if not isinstance(node, ast.Attribute) or node.attr != "name":
        return False
    return ast.unparse(node.value).rpartition(".")[2] in {"target", "strategy", "runtime"}


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
