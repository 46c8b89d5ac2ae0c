"""Prints which operators have a rule, which are barriers by choice, and which are unknown.

Run with `python -m benchmarks.coverage`.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

import onnx.defs
import onnx_ir as ir

from relayout.graph.read import NodeView
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal
from relayout.ops.registry import FAMILIES, RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from relayout.ops.rule import OpRule

WIDTH = 100


@dataclass(frozen=True, slots=True)
class Family:
    """One module of rules, as it is counted."""

    name: str
    rules: tuple[OpRule, ...]

    @property
    def moved(self) -> list[str]:
        """The operators that run in other orders."""
        return sorted(name for rule in self.rules if not rule.barrier for name in _names(rule))

    @property
    def barriers(self) -> dict[str, list[str]]:
        """The operators that run only as they stand, by reason."""
        found: dict[str, list[str]] = {}
        for rule in self.rules:
            if rule.barrier:
                found.setdefault(_reason(rule), []).extend(_names(rule))
        return found


def families() -> list[Family]:
    return [Family(module.__name__.rpartition(".")[2], module.RULES) for module in FAMILIES]


def unknown() -> list[str]:
    """The operators of onnx that nobody has decided about."""
    defined = {(schema.domain, schema.name) for schema in onnx.defs.get_all_schemas_with_history()}
    return [_name(domain, op_type) for domain, op_type in sorted(defined - RULES.keys())]


def table() -> Iterator[str]:
    """The table, line by line."""
    moved = barred = 0
    for family in families():
        moved += len(family.moved)
        barred += sum(map(len, family.barriers.values()))
        yield from _section(family)
    yield f"{moved} operators with a rule, {barred} barriers by choice, {len(unknown())} unknown"
    if unknown():
        yield _wrapped("unknown", unknown())


def _section(family: Family) -> Iterator[str]:
    yield f"{family.name}: {len(family.moved)} with a rule"
    if family.moved:
        yield _wrapped("  rule", family.moved)
    for reason, names in family.barriers.items():
        yield _wrapped(f"  barrier, {reason}", sorted(names))
    yield ""


def _wrapped(title: str, names: list[str]) -> str:
    return fill(f"{title}: {' '.join(names)}", WIDTH, subsequent_indent="    ")


def _reason(rule: OpRule) -> str:
    view = NodeView(ir.Node(rule.domain, rule.op_types[0], []), 0)
    answer = rule.transport(view, Permutation.of(1, 0))
    if not isinstance(answer, Refusal):
        raise TypeError(f"{rule.op_types[0]} is called a barrier but gives an answer")
    return answer.reason


def _names(rule: OpRule) -> list[str]:
    return [_name(rule.domain, op_type) for op_type in rule.op_types]


def _name(domain: str, op_type: str) -> str:
    return f"{domain}.{op_type}" if domain else op_type


if __name__ == "__main__":
    for line in table():
        print(line)
