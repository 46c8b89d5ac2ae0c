"""The table of operators, made from the facts that are declared about them."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.coverage import families, unknown
from relayout.ops.facts import KnownLayout, OpFacts
from relayout.ops.kind import Kind
from relayout.ops.registry import FACTS, full_name

HEADING = """# Operators

What is known of each operator, made from its facts (`ops/`) by `make docs`; do not edit it here.

- *Other orders*: whether it can be stated for operands that are stored in another order. Where not,
  the reason is told; Transposes stay on its border.
- *Kernel*: what may share a kernel with it when operators are grouped, in TVM's words; 'by its
  attributes' where it depends on them.
- *Factors*: whether its axes can be split into factors, so that orders pass through Reshapes.
- *Layout*: which layout of images it implies, if any.
"""

LAYOUTS = {KnownLayout.CHANNELS_FIRST: "channels first", KnownLayout.PLAIN: "plain", None: ""}
TITLES = ("operator", "other orders", "kernel", "factors", "layout")


def operators_text() -> str:
    return "\n".join((HEADING, *_sections(), *_summary()))


def _sections() -> Iterator[str]:
    for family in families():
        reasons = {name: why for why, names in family.barriers.items() for name in names}
        yield f"## {family.name.replace('_', ' ').capitalize()}\n"
        yield f"| {' | '.join(TITLES)} |"
        yield f"|{'---|' * len(TITLES)}"
        rows = (
            (full_name(facts.domain, op_type), facts)
            for facts in family.facts
            for op_type in facts.op_types
        )
        for name, facts in sorted(rows, key=lambda row: row[0]):
            yield _row(name, facts, reasons.get(name, ""))
        yield ""


def _row(name: str, facts: OpFacts, reason: str) -> str:
    orders = "yes" if not facts.rule.barrier else f"no: {reason or 'no rule'}"
    axes = "yes" if facts.axes is not None else ""
    cells = (f"`{name}`", orders, _kind(facts), axes, LAYOUTS[facts.layout.known])
    return f"| {' | '.join(cells)} |"


def _kind(facts: OpFacts) -> str:
    if facts.kernel is None:
        return "not known"
    kind = facts.kernel.kind
    return kind.name.lower() if isinstance(kind, Kind) else "by its attributes"


def _summary() -> Iterator[str]:
    moved = sum(not facts.rule.barrier for facts in FACTS.values())
    missing = ", ".join(f"`{name}`" for name in unknown())
    yield f"{len(FACTS)} operators are declared, {moved} of which run in other orders."
    yield f"Of the operators of onnx, in any version, not declared: {missing or 'none'}.\n"
