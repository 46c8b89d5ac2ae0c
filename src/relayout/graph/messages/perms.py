"""Transposes whose perm cannot be one: no permutation, or not of as many axes as there are."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeAlias

import onnx

from relayout.errors import BadModelError, quoted
from relayout.graph.messages.functions import FunctionKey, key_of
from relayout.graph.messages.walk import Body, described, subgraphs_of

Ranks: TypeAlias = ChainMap[str, int]
"""How many axes the values have that can be seen in a body, as far as that is known."""


def check_perms(graph: onnx.GraphProto, called: Iterable[onnx.FunctionProto]) -> None:
    """Refuse perms that are not valid, in every body of a graph and of functions.

    `graph` is the outcome of onnx's inference. Functions are checked as they are called too, where
    the ranks of their operands are known; ranks that only the run tells contradict nothing.
    """
    functions = {key_of(function): function for function in called}
    waiting: list[tuple[Body, Ranks]] = [(graph, ChainMap())]
    waiting += [(function, ChainMap()) for function in functions.values()]
    checked: set[tuple[FunctionKey, tuple[int | None, ...]]] = set()
    while waiting:
        body, outer = waiting.pop()
        ranks = outer.new_child(dict(_ranks(body)))
        for node in body.node:
            _check(node, ranks)
            waiting += [(inner, ranks) for inner in subgraphs_of(node)]
            key = node.domain, node.op_type, node.overload
            if key not in functions:
                continue
            given = tuple(ranks.get(name) for name in node.input)
            if (key, given) not in checked:
                checked.add((key, given))
                waiting.append((functions[key], _operands(functions[key], given)))


def _check(node: onnx.NodeProto, ranks: Mapping[str, int]) -> None:
    if node.op_type != "Transpose" or node.domain not in {"", "ai.onnx"}:
        return
    perms = [attribute for attribute in node.attribute if attribute.name == "perm"]
    if len(perms) != 1 or perms[0].ref_attr_name or perms[0].type != onnx.AttributeProto.INTS:
        return
    perm = list(perms[0].ints)
    if sorted(perm) != list(range(len(perm))):
        raise BadModelError(f"{described(node)} has the perm {perm}, which is no permutation")
    rank = ranks.get(node.input[0]) if node.input else None
    if rank not in {None, len(perm)}:
        axes = "1 axis" if rank == 1 else f"{rank} axes"
        operand = quoted(node.input[0])
        raise BadModelError(f"{described(node)} has the perm {perm}, but {operand} has {axes}")


def _ranks(body: Body) -> Iterator[tuple[str, int]]:
    if isinstance(body, onnx.FunctionProto):
        return
    for tensor in body.initializer:
        yield tensor.name, len(tensor.dims)
    for value in chain(body.input, body.value_info, body.output):
        if value.type.tensor_type.HasField("shape"):
            yield value.name, len(value.type.tensor_type.shape.dim)


def _operands(function: onnx.FunctionProto, ranks: tuple[int | None, ...]) -> Ranks:
    pairs = zip(function.input, ranks, strict=False)
    return ChainMap({name: rank for name, rank in pairs if rank is not None})
