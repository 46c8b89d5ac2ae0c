"""The smallest part of a model that still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.judge.models import Case, Generated
from benchmarks.judge.running import NotRunError, run
from benchmarks.judge.scope import InvalidError, declared

Fails = Callable[[Generated], bool]


def reduced(given: Generated, fails: Fails) -> Generated:
    """Nodes are left out, what they gave becomes an input or a constant, while it still fails."""
    try:
        known = _all_values(given)
    except NotRunError:
        return given
    best, kept = given, list(range(len(given.model.graph.node)))
    size = max(len(kept) // 2, 1)
    while True:
        smaller = _first_smaller(given, known, kept, size, fails)
        if smaller is not None:
            best, kept = smaller
        elif size == 1:
            return best
        if smaller is None or size > len(kept) // 2:
            size = max(size // 2, 1)


def _first_smaller(
    given: Generated, known: dict[str, Any], kept: list[int], size: int, fails: Fails
) -> tuple[Generated, list[int]] | None:
    for start in range(0, len(kept), size):
        rest = kept[:start] + kept[start + size :]
        part = _part(given, known, rest) if rest else None
        if part is not None and fails(part):
            return part, rest
    return None


def _all_values(given: Generated) -> dict[str, Any]:
    """What every value of the graph holds for the first inputs."""
    model = onnx.ModelProto()
    model.CopyFrom(given.model)
    names = [name for node in model.graph.node for name in node.output if name]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    feeds = given.cases[0].feeds
    return {**feeds, **dict(zip(names, run(model, feeds, given.runtime), strict=True))}


def _part(given: Generated, known: dict[str, Any], kept: Sequence[int]) -> Generated | None:
    """The model of some nodes, which runs by itself."""
    model = onnx.ModelProto()
    model.CopyFrom(given.model)
    graph = model.graph
    nodes = [given.model.graph.node[index] for index in kept]
    written = {name for node in nodes for name in node.output if name}
    read = list(dict.fromkeys(name for node in nodes for name in _reads(node)))
    constants = {tensor.name: tensor for tensor in given.model.graph.initializer}
    inputs = {value.name: value for value in given.model.graph.input}
    feeds: dict[str, Any] = {}
    for field in (graph.node, graph.input, graph.output, graph.initializer, graph.value_info):
        del field[:]
    graph.node.extend(nodes)
    try:
        for name in read:
            if name in constants:
                graph.initializer.append(constants[name])
            elif name not in written and name in known:
                _feed(graph, inputs, name, known[name], feeds)
        free = [name for name in sorted(written) if name not in set(read)]
        graph.output.extend(_result(name, known[name]) for name in free)
        wanted = run(model, feeds, given.runtime)
        onnx.checker.check_model(model, full_check=True)
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it is no model
        return None
    case = Case(feeds, wanted, (False,) * len(wanted))
    return Generated(model, (case,), given.runtime, given.placed)


def _feed(
    graph: onnx.GraphProto,
    inputs: dict[str, onnx.ValueInfoProto],
    name: str,
    data: Any,
    feeds: dict[str, Any],
) -> None:
    """A value that was computed is given; short lists of integers are constants."""
    if name in inputs:
        graph.input.append(inputs[name])
        feeds[name] = data
    elif isinstance(data, np.ndarray) and data.dtype == np.int64 and data.ndim == 1:
        graph.initializer.append(numpy_helper.from_array(data, name))
    else:
        graph.input.append(declared(name, data))
        feeds[name] = data


def _result(name: str, data: Any) -> onnx.ValueInfoProto:
    if not isinstance(data, np.ndarray):
        raise InvalidError
    kind = helper.np_dtype_to_tensor_dtype(data.dtype)
    return helper.make_tensor_value_info(name, kind, [None] * data.ndim)


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from _reads(inner)
