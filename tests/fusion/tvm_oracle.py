"""TVM's own FuseOps, on graphs of our choice.

It looks at nothing but the pattern that each function claims for itself, so functions that do
nothing to speak of, one for each node, let it partition any graph.
"""

from __future__ import annotations

import functools
from typing import Any

import tvm
from tvm import relax, te
from tvm.script import relax as script

from tests.fusion.random_expressions import PARAMETERS, Drawn

SHAPE = (4, 4)


@functools.cache
def _function(arity: int) -> Any:
    operands = [te.placeholder(SHAPE, "float32") for _ in range(arity)]
    result = te.compute(
        SHAPE, lambda i, j: sum((each(i, j) for each in operands[1:]), operands[0](i, j))
    )
    return te.create_prim_func([*operands, result]).without_attr("global_symbol")


def groups_by_tvm(graph: Drawn) -> set[frozenset[int]]:
    """The nodes of each group, by number."""
    with tvm.transform.PassContext(config={"relax.FuseOps.max_depth": graph.max_depth}):
        module = relax.transform.FuseOps()(_module(graph))
    found: set[frozenset[int]] = set()
    for name, function in module.functions.items():
        if not isinstance(function, relax.Function):
            continue
        nodes = _called(module, function)
        if name.name_hint == "main":
            found |= {frozenset([node]) for node in nodes}
        else:
            found.add(frozenset(nodes))
    return found


def _module(graph: Drawn) -> Any:
    builder, tensor = relax.BlockBuilder(), script.Tensor(SHAPE, "float32")
    values: dict[str | int, Any] = {name: relax.Var(name, tensor) for name in PARAMETERS}
    with builder.function("main", list(values.values())):
        with builder.dataflow():
            for number, kind in enumerate(graph.kinds):
                operands = [values[operand] for operand in graph.operands[number]]
                function = _function(len(operands)).with_attr("op_pattern", int(kind))
                name = builder.add_func(function.with_attr("node", number), f"n{number}")
                call = relax.call_tir(name, operands, out_ty=tensor)
                is_output = number in graph.outputs
                values[number] = (builder.emit_output if is_output else builder.emit)(call)
        ends = [values[number] for number in graph.outputs]
        builder.emit_func_output(relax.Tuple(ends) if len(ends) > 1 else ends[0])
    return builder.get()


def _called(module: Any, function: Any) -> list[int]:
    found: list[int] = []

    def visit(expression: Any) -> None:
        if not isinstance(expression, relax.Call) or not isinstance(expression.op, tvm.ir.Op):
            return
        if expression.op.name == "relax.call_tir":
            found.append(int(module[expression.args[0]].attrs["node"]))

    relax.analysis.post_order_visit(function, visit)
    return found
