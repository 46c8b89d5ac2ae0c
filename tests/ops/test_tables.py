"""Facts about operators are asked for: no other room keeps tables of operators."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import relayout
from relayout.ops.registry import FACTS

SOURCE = Path(relayout.__file__).parent
OPERATORS = {op_type for _, op_type in FACTS}

BY_NATURE = {
    "ops/": "declares the facts",
    "rewrite/": "a rule is about the operators that it matches",
    "verify/": "shares no code with what it checks",
    "backends/torch/lower/": "an operator in terms of torch",
    "backends/torch/runtime/": "what such terms call",
    "backends/litert/lower/": "an operator in terms of LiteRT",
    "targets/transpose_prices.py": "what ONNX Runtime makes one slow Transpose across",
    "targets/ort_": "what ONNX Runtime joins, and moves Transposes through, by name",
    "backends/torch/providers/": "a kernel is about the operators that it has",
    "graph/shapes/propagation.py": "what onnx's inference makes of the lists it follows",
    "graph/messages/inferable.py": "what onnx's inference mistakes in two operators",
    "graph/io/limits.py": "what the old versions of two operators may not be given",
    "layout/block_move.py": "two operators as what they do to axes",
    "graph/shapes/ranks.py": "what onnx's inference of single operators leaves open",
}
"""Where operators are named in numbers, with the reason."""


def _tables(text: str) -> Iterator[list[str]]:
    """The collections of a module, by their entries or keys, that hold names of operators only."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            entries = node.elts
        elif isinstance(node, ast.Dict):
            entries = [key for key in node.keys if key is not None]
        else:
            continue
        names = [e.value for e in entries if isinstance(e, ast.Constant)]
        texts = [name for name in names if isinstance(name, str)]
        if len(texts) > 1 and OPERATORS.issuperset(texts):
            yield texts


def _place(module: Path) -> str:
    return module.relative_to(SOURCE).as_posix()


def test_no_table_of_operators_is_kept_outside() -> None:
    found = {
        _place(module): tables
        for module in sorted(SOURCE.rglob("*.py"))
        if not _place(module).startswith(tuple(BY_NATURE))
        and (tables := list(_tables(module.read_text())))
    }
    assert found == {}


def test_a_table_is_found_in_every_form() -> None:
    for form in ('("Conv", "Relu")', 'frozenset({"Conv", "Gemm"})', '{"Conv": 1, "Tile": 2}'):
        assert len(list(_tables(f"X = {form}"))) == 1
    assert not list(_tables('X = ("Conv", "channels")'))
