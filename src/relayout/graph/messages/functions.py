"""Which function calls which: refuses recursion and counts what inlining would make."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

import onnx

from relayout.errors import BadModelError, quoted
from relayout.graph.messages.walk import Body, nested_bodies

FunctionKey: TypeAlias = tuple[str, str, str]
"""Domain, name, overload."""


def key_of(function: onnx.FunctionProto) -> FunctionKey:
    return function.domain, function.name, function.overload


def expanded_size(model: onnx.ModelProto) -> int:
    """The number of nodes the model would have if every call were replaced by what it calls.

    Refuses functions that call themselves, directly or not, and functions defined twice.
    """
    functions = {key_of(function): function for function in model.functions}
    if len(functions) != len(model.functions):
        raise BadModelError(f"function {_repeated(model)} is defined twice")
    calls = {key: list(_calls(function, functions)) for key, function in functions.items()}
    try:
        order = list(TopologicalSorter(calls).static_order())
    except CycleError as error:
        raise BadModelError(f"function {quoted(error.args[1][0][1])} calls itself") from None
    sizes: dict[FunctionKey, int] = {}
    for key in order:
        sizes[key] = _size(functions[key], calls[key], sizes)
    return _size(model.graph, list(_calls(model.graph, functions)), sizes)


def _size(body: Body, calls: list[FunctionKey], sizes: dict[FunctionKey, int]) -> int:
    own = sum(len(inner.node) for inner in nested_bodies(body))
    return own + sum(sizes[callee] for callee in calls)


def _calls(body: Body, functions: dict[FunctionKey, onnx.FunctionProto]) -> Iterator[FunctionKey]:
    if not functions:
        return
    for inner in nested_bodies(body):
        for node in inner.node:
            key = node.domain, node.op_type, node.overload
            if key in functions:
                yield key


def _repeated(model: onnx.ModelProto) -> str:
    seen: set[FunctionKey] = set()
    for function in model.functions:
        if key_of(function) in seen:
            return quoted(function.name)
        seen.add(key_of(function))
    return quoted("")
