"""The small changes of a source file: one operator, constant, condition or call each."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

Apply = Callable[[], None]
Changes = Iterator[tuple[str, Apply]]

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
REPLACED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
TEXTS = frozenset({"Refusal", "refusal", "barrier", "RelayoutError", "NotKnownError"})
"""Calls that make texts for people, which no test should pin."""
UNSEEN = frozenset({"forget_pages"})
"""Calls that only say what counts as memory."""
SURE = frozenset({"deterministic", "strict"})
"""Arguments of calls that only ask for what is so, or for the same bytes each time."""
DROPPED = frozenset({"inverse"})
"""Methods and attributes that are left out."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Mutant:
    """The change with a number, among those of a file."""

    path: Path
    number: int
    function: str
    line: int
    what: str

    def codes(self) -> dict[tuple[str, int], CodeType]:
        """The changed function, and those that are made inside of it, by name and line."""
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        for number, (function, _, apply) in enumerate(_changes(tree)):
            if number == self.number:
                apply()
                ast.fix_missing_locations(tree)
                module = compile(tree, str(self.path), "exec", dont_inherit=True)
                found = {(c.co_qualname, c.co_firstlineno): c for c in _codes(module)}
                return {
                    (name, line): code
                    for (name, line), code in found.items()
                    if name.partition(".<locals>")[0] == function
                }
        raise LookupError(self)

    def text(self, root: Path) -> str:
        return f"{self.path.relative_to(root)}:{self.line} {self.function}: {self.what}"


def mutants_of(path: Path) -> Iterator[Mutant]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for number, (function, (line, what), _) in enumerate(_changes(tree)):
        yield Mutant(path, number, function, line, what)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _changes(tree: ast.Module) -> Iterator[tuple[str, tuple[int, str], Apply]]:
    """Every change, with the function it is in, its line and what it is."""
    for qualified, function in _functions(tree, ""):
        for statement in function.body:
            for node in _inside(statement):
                for what, apply in _changes_of(node):
                    yield qualified, (node.lineno, what), apply


def _functions(scope: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, Function]]:
    for node in scope.body:
        if isinstance(node, Function):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")


def _inside(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """A node and those in it, without texts and types."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr) or _is_text(node):
        return
    if isinstance(node, ast.keyword) and node.arg in SURE:
        return
    if isinstance(node, ast.expr | ast.stmt):
        yield node
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _inside(child)


def _is_text(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in TEXTS


def _changes_of(node: ast.expr | ast.stmt) -> Changes:
    for kind, changes in KINDS:
        if isinstance(node, kind):
            yield from changes(node)


def _comparisons(node: ast.Compare) -> Changes:
    for place, operator in enumerate(node.ops):
        other = COMPARED[type(operator)]
        what = f"{type(operator).__name__} becomes {other.__name__}"
        yield what, _setting(node.ops, place, other())


def _junctions(node: ast.BoolOp) -> Changes:
    swapped = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield f"becomes {type(swapped).__name__}", _assigning(node, "op", swapped)


def _arithmetic(node: ast.BinOp | ast.AugAssign) -> Changes:
    replaced = REPLACED.get(type(node.op))
    if replaced is not None:
        what = f"{type(node.op).__name__} becomes {replaced.__name__}"
        yield what, _assigning(node, "op", replaced())


def _signs(node: ast.UnaryOp) -> Changes:
    if isinstance(node.op, ast.USub):
        yield "minus is left out", _assigning(node, "op", ast.UAdd())
    elif isinstance(node.op, ast.Not):
        # Twice not: what is left stays a truth value.
        again = ast.UnaryOp(ast.Not(), node.operand)
        yield "not is left out", _assigning(node, "operand", again)


def _conditions(node: ast.If | ast.IfExp) -> Changes:
    for truth in (True, False):
        kept = _not_asked(truth, node.test)
        yield f"the condition is {truth}", _assigning(node, "test", kept)


def _filters(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> Changes:
    for loop in node.generators:
        if loop.ifs:
            kept = [_not_asked(True, one) for one in loop.ifs]
            yield "the filter is left out", _assigning(loop, "ifs", kept)


def _steps(node: ast.Expr) -> Changes:
    if isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") not in UNSEEN:
        yield "the call is left out", _assigning(node, "value", _not_asked(False, node.value))


def _not_asked(truth: bool, node: ast.expr) -> ast.expr:
    """A constant in place of a node, whose names stay: a closure keeps all that it holds."""
    operator = ast.Or() if truth else ast.And()
    return ast.BoolOp(operator, [ast.Constant(truth), node])


def _constants(node: ast.Constant) -> Changes:
    value = node.value
    if isinstance(value, bool):
        yield f"{value} becomes {not value}", _assigning(node, "value", not value)
    elif isinstance(value, int):
        # Not 2 for 1, which may be a flag and would be one still.
        other = 0 if value == 1 else value + 1
        yield f"{value} becomes {other}", _assigning(node, "value", other)


def _arguments(node: ast.Call) -> Changes:
    if len(node.args) >= 2 and all(isinstance(one, ast.Name) for one in node.args[:2]):
        swapped = [node.args[1], node.args[0], *node.args[2:]]
        yield "the first arguments are exchanged", _assigning(node, "args", swapped)
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr in DROPPED and not node.args:
        kept = ast.Call(ast.Lambda(_no_arguments(), function.value), [], [])
        what = f"{function.attr} is left out"
        yield what, _assigning(node, "func", kept.func)


def _no_arguments() -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])


def _setting(found: list[ast.cmpop], place: int, value: ast.cmpop) -> Apply:
    def apply() -> None:
        found[place] = value

    return apply


def _assigning(node: ast.AST, field: str, value: object) -> Apply:
    def apply() -> None:
        setattr(node, field, value)

    return apply


KINDS: tuple[tuple[Any, Callable[[Any], Changes]], ...] = (
    (ast.Compare, _comparisons),
    (ast.BoolOp, _junctions),
    (ast.BinOp | ast.AugAssign, _arithmetic),
    (ast.UnaryOp, _signs),
    (ast.Constant, _constants),
    (ast.If | ast.IfExp, _conditions),
    (ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, _filters),
    (ast.Expr, _steps),
    (ast.Call, _arguments),
)
