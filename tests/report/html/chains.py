"""Graphs to be drawn, of any length."""

from __future__ import annotations

from dataclasses import replace

from relayout.report.html.drawn import (
    INPUT,
    OUTPUT,
    DrawnGraph,
    DrawnNode,
    DrawnTranspose,
    DrawnValue,
)

HOSTILE = "</script><img src=x onerror=\"document.title='taken'\"><!--"
WHY = ("wanted by conv: Conv takes its channels from axis 1",)
CAUSES = ("wanted by: Conv takes its channels from axis 1",)


def chain(ops: list[str], names: list[str] | None = None) -> DrawnGraph:
    """Operators one after the other; a T is a Transpose, and a value is known by its content."""
    values, nodes, content = [_value("x", 0, 0)], [DrawnNode(INPUT, "x", (), (0,))], 0
    for number, op in enumerate(ops):
        name = names[number] if names else f"{op}{number}"
        moves = DrawnTranspose((0, 2, 3, 1), "one axis moves", 1000 + number, WHY, CAUSES)
        content += op != "T"
        values.append(_value(f"v{number}", content, number))
        made = DrawnNode("Transpose" if op == "T" else op, name, (number,), (number + 1,))
        nodes.append(replace(made, transpose=moves if op == "T" else None))
    return DrawnGraph((*nodes, DrawnNode(OUTPUT, "y", (len(ops),))), tuple(values))


def _value(name: str, content: int, number: int) -> DrawnValue:
    kind = ("first", "last", "tensor")[number % 3]
    return DrawnValue(name, "[1,8,8,3]", "NHWC", kind, content, 1_000_000 + content)


def before_and_after(count: int) -> tuple[DrawnGraph, DrawnGraph]:
    """About as many nodes, half of them Transposes of which few are left."""
    block = ["T", "Conv", "T", "Relu", "T", "Pool", "T", "Add"]
    ops = [f"{op}" for _ in range(count // len(block)) for op in block] or block
    return chain(ops), chain(["T", *(op for op in ops if op != "T")])


def branching(count: int) -> DrawnGraph:
    """Blocks with a way round them, none of which is like another."""
    values, nodes = [DrawnValue("x")], [DrawnNode(INPUT, "x", (), (0,))]
    for number in range(count):
        reads = (len(values) - 1, max(0, len(values) - 2 - number % 5))
        nodes.append(DrawnNode(f"Op{number * number % 17}", f"n{number}", reads, (len(values),)))
        values.append(DrawnValue(f"v{number}"))
    return DrawnGraph(tuple(nodes), tuple(values))
