"""Finds statements that change a graph of onnx-ir in the text of a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

MAKERS = frozenset(("Function", "Graph", "Model", "Node", "Value", "node", "val"))
"""What onnx-ir makes parts of a graph by."""

EDITS = frozenset(
    (
        *("insert_after", "insert_before", "merge_shapes", "prepend", "register_initializer"),
        *("replace_all_uses_with", "replace_input_with", "resize_inputs", "resize_outputs"),
    )
)
"""Methods that nothing but a graph and its parts has."""

SEQUENCES = frozenset(("graph", "inputs", "outputs"))
"""Parts of a model that hold others in an order."""

MAPPINGS = frozenset(
    (
        *("attributes", "functions", "initializers", "meta", "metadata_props"),
        *("opset_imports", "opsets"),
    )
)
"""Parts of a model that hold others by name."""

SEQUENCE_EDITS = frozenset(("append", "clear", "extend", "insert", "pop", "remove", "sort"))
MAPPING_EDITS = frozenset(("add", "clear", "pop", "popitem", "setdefault", "update"))

FIELDS = frozenset(
    (
        *("const_value", "doc_string", "domain", "dtype", "name", "op_type", "overload", "shape"),
        *("type", "version"),
    )
)
"""What is known of a node or a value."""


def changes_in(text: str) -> list[int]:
    """The lines of a module that change a graph."""
    return sorted({line for scope in _scopes(ast.parse(text)) for line in _changes(scope)})


def _scopes(tree: ast.Module) -> Iterator[ast.AST]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    yield tree
    yield from (node for node in ast.walk(tree) if isinstance(node, kinds))


def _changes(scope: ast.AST) -> Iterator[int]:
    aliases = {
        target.id: node.value.attr
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and _is_edit(node.func, aliases):
            yield node.lineno
        for target in _targets(node):
            if _is_changed(target, aliases):
                yield target.lineno


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement assigns to or deletes."""
    found: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        found = list(node.targets)
    elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.AnnAssign) and node.value):
        found = [node.target]
    for target in found:
        yield from target.elts if isinstance(target, ast.Tuple | ast.List) else [target]


def _is_edit(function: ast.expr, aliases: Mapping[str, str]) -> bool:
    if not isinstance(function, ast.Attribute):
        return False
    if isinstance(function.value, ast.Name) and function.value.id == "ir":
        return function.attr in MAKERS
    held = _held_as(function.value, aliases)
    return (
        function.attr in EDITS
        or (held in SEQUENCES and function.attr in SEQUENCE_EDITS)
        or (held in MAPPINGS and function.attr in MAPPING_EDITS)
    )


def _is_changed(target: ast.expr, aliases: Mapping[str, str]) -> bool:
    if isinstance(target, ast.Subscript):
        return _held_as(target.value, aliases) in SEQUENCES | MAPPINGS
    return isinstance(target, ast.Attribute) and target.attr in FIELDS and not _is_own(target)


def _held_as(holder: ast.expr, aliases: Mapping[str, str]) -> str | None:
    """The name of the field that an expression reads, directly or by a local name for it."""
    if isinstance(holder, ast.Name):
        return aliases.get(holder.id)
    return holder.attr if isinstance(holder, ast.Attribute) and not _is_own(holder) else None


def _is_own(attribute: ast.Attribute) -> bool:
    """Whether an object reads a field of its own: classes of this package are not graphs."""
    return isinstance(attribute.value, ast.Name) and attribute.value.id == "self"
