"""What a kernel makes of a product or a result belongs to the element, or row, it has at hand.

A check by numbers that knows none of the rules: change one element of what one operator makes, run
the rest of the group, and see how many elements of each result change.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper
from onnx.reference import ReferenceEvaluator

from relayout.fusion.border import operands_of, results_of
from relayout.fusion.groups import Group
from relayout.fusion.partition import partition
from relayout.graph.read import constant_of, shape_of
from relayout.graph.region import regions_of
from tests.fusion.networks import transformer_block
from tests.fusion.random_networks import random_network
from tests.rewrite.rewriting import to_ir

BY_ROWS = {"Softmax", "ReduceMax", "ReduceMean", "ReduceSum"}
PRODUCTS = {"Conv", "MatMul"}
SEEDS = range(20)
LARGEST_CHANGE = 1e-6


def _cuts(group: Group, results: tuple[ir.Value, ...]) -> list[ir.Node]:
    """Products, and what makes a result that is not the only one."""
    made = {value.producer() for value in results} if len(results) > 1 else set()
    return [node for node in group.nodes if node.op_type in PRODUCTS or node in made]


def _row(group: Group) -> int:
    """How many elements may depend on one: those of the row, where a kernel works by rows."""
    lengths = [
        (shape_of(node.inputs[0]) or (1,))[-1] for node in group.nodes if node.op_type in BY_ROWS
    ]
    return max((length for length in lengths if isinstance(length, int)), default=1)


def _epilogue(
    group: Group, results: tuple[ir.Value, ...], cut: ir.Node
) -> tuple[onnx.ModelProto, list[ir.Value]] | None:
    """The group without one operator, whose result becomes an input."""
    made = cut.outputs[0]
    nodes = [node for node in group.nodes if node is not cut]
    wanted = [value for value in results if value is not made]
    if not wanted:
        return None
    given = [*operands_of(group), *group.constants, made]
    info = [
        helper.make_tensor_value_info(value.name or "", int(value.dtype or 1), shape_of(value))
        for value in given
    ]
    outputs = [onnx.ValueInfoProto(name=value.name) for value in wanted]
    messages = [ir.to_proto(node) for node in nodes]
    graph = helper.make_graph(messages, "rest", info, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), given


def _feeds(given: list[ir.Value]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    feeds = {}
    for value in given:
        tensor = constant_of(value)
        shape = tuple(int(n) for n in shape_of(value) or () if isinstance(n, int))
        drawn = random.uniform(0.5, 1.5, shape).astype(np.float32)
        feeds[value.name or ""] = drawn if tensor is None else tensor.numpy()
    return feeds


def _changed(model: onnx.ModelProto, feeds: dict[str, np.ndarray], name: str) -> list[int]:
    """How many elements of each result change with one element of an input, at most."""
    run = ReferenceEvaluator(model)
    before = run.run(None, feeds)
    most = [0] * len(before)
    size = feeds[name].size
    for place in {0, size // 3, size - 1}:
        moved = feeds[name].copy()
        moved.reshape(-1)[place] += 0.25
        after = run.run(None, {**feeds, name: moved})
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            differs = np.abs(old.astype(np.float64) - new.astype(np.float64)) > LARGEST_CHANGE
            most[number] = max(most[number], int(np.count_nonzero(differs)))
    return most


def _check(model: onnx.ModelProto) -> int:
    """Checks every group that has something to cut; returns how many results were looked at."""
    seen = 0
    found = partition(next(regions_of(to_ir(model))))
    for group, results in zip(found.groups, results_of(found), strict=True):
        for node in _cuts(group, results):
            rest = _epilogue(group, results, node)
            if rest is None:
                continue
            epilogue, given = rest
            counts = _changed(epilogue, _feeds(given), node.outputs[0].name or "")
            names = [each.outputs[0].name for each in group.nodes]
            assert all(count <= _row(group) for count in counts), (names, counts)
            seen += len(counts)
    return seen


def test_random_networks() -> None:
    assert sum(_check(random_network(seed)) for seed in SEEDS) > 80


def test_a_transformer_block() -> None:
    assert _check(transformer_block()) > 5
