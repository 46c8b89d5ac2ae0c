"""The definitions of channels-last kernels that a model carries."""

from __future__ import annotations

from collections import Counter

import onnx
import onnx_ir as ir

from relayout.errors import RelayoutError
from relayout.graph.editing.functions import define_function, remove_function
from relayout.graph.read import version_of
from relayout.graph.region import KERNEL_DOMAIN
from relayout.targets.channels_last import KERNELS


def check_kernels(model: ir.Model) -> None:
    """Refuse a model that calls something else by the name of a kernel."""
    for function in model.functions.values():
        if function.domain != KERNEL_DOMAIN or function.name not in KERNELS:
            continue
        known = KERNELS[function.name].definition(version_of(function.opset_imports, ""))
        if _content(ir.serde.serialize_function(function)) != _content(known):
            raise RelayoutError(f"function {function.name} is not the kernel of that name")


def _content(function: onnx.FunctionProto) -> tuple[object, ...]:
    """What a function computes, without names of nodes and notes."""
    nodes = [
        (
            *(node.domain, node.op_type),
            *(tuple(node.input), tuple(node.output)),
            sorted(
                (each.name, each.ref_attr_name, tuple(each.ints), each.i, each.f)
                for each in node.attribute
            ),
        )
        for node in function.node
    ]
    return tuple(function.input), tuple(function.output), sorted(function.attribute), nodes


def define_kernels(model: ir.Model) -> Counter[str]:
    """Define the kernels that a model calls and remove those that it does not call."""
    called = _called(model)
    applied: Counter[str] = Counter()
    for name in KERNELS:
        if name not in called and remove_function(model, KERNEL_DOMAIN, name):
            applied["remove kernel"] += 1
    for name, version in called.items():
        if name in KERNELS and define_function(model, KERNELS[name].definition(version)):
            applied["define kernel"] += 1
    return applied


def _called(model: ir.Model) -> dict[str, int]:
    """The functions of the domain that anything calls, with the opset version of the caller."""
    called: dict[str, int] = {}
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        for node in graph.all_nodes():
            if node.domain == KERNEL_DOMAIN:
                called.setdefault(node.op_type, version_of(graph.opset_imports, ""))
    return called
