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
from relayout.ops.registry import FACTS, FAMILIES
from relayout.ops.rule import NOTHING_KNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from relayout.ops.facts import OpFacts

WIDTH = 100


@dataclass(frozen=True, slots=True)
class Family:
    """One module of facts, as it is counted."""

    name: str
    facts: tuple[OpFacts, ...]

    @property
    def moved(self) -> list[str]:
        """The operators that run in other orders."""
        moved = (facts for facts in self.facts if not facts.rule.barrier)
        return sorted(name for facts in moved for name in _names(facts))

    @property
    def barriers(self) -> dict[str, list[str]]:
        """The operators that run only in the given order, by reason."""
        found: dict[str, list[str]] = {}
        for facts in self.facts:
            if facts.rule.barrier and facts.rule is not NOTHING_KNOWN:
                found.setdefault(_reason(facts), []).extend(_names(facts))
        return found


def families() -> list[Family]:
    return [Family(module.__name__.rpartition(".")[2], module.FACTS) for module in FAMILIES]


def unknown() -> list[str]:
    """The operators of onnx that no facts are declared for."""
    defined = {(schema.domain, schema.name) for schema in onnx.defs.get_all_schemas_with_history()}
    known = {key for key, facts in FACTS.items() if facts.rule is not NOTHING_KNOWN}
    return [_name(domain, op_type) for domain, op_type in sorted(defined - known)]


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


def _reason(facts: OpFacts) -> str:
    view = NodeView(ir.Node(facts.domain, facts.op_types[0], []), 0)
    answer = facts.rule.transport(view, Permutation.of(1, 0))
    if not isinstance(answer, Refusal):
        raise TypeError(f"{facts.op_types[0]} is called a barrier but gives an answer")
    return answer.reason


def _names(facts: OpFacts) -> list[str]:
    return [_name(facts.domain, op_type) for op_type in facts.op_types]


def _name(domain: str, op_type: str) -> str:
    return f"{domain}.{op_type}" if domain else op_type


if __name__ == "__main__":
    for line in table():
        print(line)
