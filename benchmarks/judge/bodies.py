"""Nodes with bodies and calls of functions: If, Loop, Scan, SequenceMap, the model's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.judge.running import NEWEST_OF_ORT
from benchmarks.judge.scope import FUNCTIONS, InvalidError, Scope, Value, declared

Grow = Callable[[Scope, int], None]


def branch(scope: Scope, grow: Grow) -> None:
    """An If, whose branches give values of the same shapes."""
    condition = _condition(scope)
    one, other = scope.child(), scope.child()
    for body in (one, other):
        grow(body, scope.chance.randint(1, 4))
    if not one.values:
        raise InvalidError
    results = _some(one)
    partners = [other.one("Identity", [_partner(other, value)]) for value in results]
    bodies = {
        "then_branch": _graph(one, "then", (), [_own(one, value) for value in results]),
        "else_branch": _graph(other, "else", (), partners),
    }
    captured = [*_captured(scope, bodies["then_branch"]), *_captured(scope, bodies["else_branch"])]
    scope.add("If", [condition], bodies, outputs=len(results), captured=captured)


def _condition(scope: Scope) -> Value:
    truth = np.asarray(scope.chance.random() < 0.5)
    if scope.is_function:
        return scope.constant(truth)
    condition = scope.model.input(truth) if scope.chance.random() < 0.8 else scope.constant(truth)
    return scope.one("Not", [condition]) if scope.chance.random() < 0.3 else condition


def _partner(body: Scope, value: Value) -> Value:
    """What the other branch gives in place of a value."""
    found = body.alike(value)
    if found is None:
        order = body.order(value.rank)
        stored = np.ascontiguousarray(value.data.transpose(np.argsort(order)))
        found = body.transposed(body.constant(stored), order)
    return found


def _picked(body: Scope) -> Value:
    found = [value for value in body.values if isinstance(value.data, np.ndarray)]
    if not found:
        raise InvalidError
    return body.chance.choice(found[-3:])


def _some(body: Scope) -> list[Value]:
    """One or two different values."""
    found = {value.name: value for value in (_picked(body) for _ in range(_one_or_two(body)))}
    return list(found.values())


def _own(body: Scope, value: Value) -> Value:
    """A value that a node of the body writes, since captured values may not be its results."""
    written = {name for node in body.nodes for name in node.output}
    return value if value.name in written else body.one("Identity", [value])


def loop(scope: Scope, grow: Grow) -> None:
    """A Loop with states of fixed shapes, and perhaps a result of each round."""
    body = scope.child()
    states = [scope.pick(lambda v: v.data.dtype == np.float32) for _ in range(_one_or_two(scope))]
    number = _formal(body, np.asarray(0, np.int64))
    truth = _formal(body, np.asarray(True))
    inner = [_formal(body, state.data, exact=state.exact) for state in states]
    grow(body, scope.chance.randint(2, 5))
    results = [body.one("Identity", [_next_state(body, state)]) for state in inner]
    rounds = [body.one("Identity", [value]) for value in _of_each_round(body)]
    going = body.one("Identity", [truth])
    formals = [number, truth, *inner]
    graph = _graph(body, "loop", formals, [going, *results, *rounds])
    count = np.asarray(scope.chance.randint(1, 3), np.int64)
    trips = scope.fresh(count) if scope.chance.random() < 0.6 else scope.constant(count)
    scope.add(
        "Loop",
        [trips, scope.constant(np.asarray(True)), *states],
        {"body": graph},
        outputs=len(results) + len(rounds),
        captured=_captured(scope, graph),
    )


def _of_each_round(body: Scope) -> Iterator[Value]:
    """Perhaps a value.

    ONNX Runtime joins results without elements in the wrong rank, the reference all of them.
    """
    value = _picked(body)
    if body.chance.random() < 0.5 and value.data.size and body.opset <= NEWEST_OF_ORT:
        yield value


def _one_or_two(scope: Scope) -> int:
    return scope.chance.randint(1, 2)


def _next_state(body: Scope, state: Value) -> Value:
    found = body.alike(state, besides=frozenset({state.name}))
    return found or body.one("Neg", [state])


def scan(scope: Scope, grow: Grow) -> None:
    """A Scan over one or two values, along some of their axes, in either direction."""
    if scope.opset < 9:
        raise InvalidError
    first = scope.floats(1, 4)
    axes = [scope.chance.randrange(first.rank)]
    length = first.data.shape[axes[0]]
    if not length:
        raise InvalidError
    values = [first]
    if scope.chance.random() < 0.4:
        values.append(scope.pick(lambda v: v.data.dtype == np.float32 and length in v.data.shape))
        axes.append(values[1].data.shape.index(length))
    states = [scope.floats(0, 3)] if scope.chance.random() < 0.6 else []
    body = scope.child()
    inner = [_formal(body, state.data, exact=state.exact) for state in states]
    slices = [
        _formal(body, value.data.take(0, axis), exact=value.exact)
        for value, axis in zip(values, axes, strict=True)
    ]
    grow(body, scope.chance.randint(2, 5))
    results = [body.one("Identity", [_next_state(body, state)]) for state in inner]
    # ONNX Runtime gives arbitrary numbers for a value that is a state and a result of each round.
    rounds = [body.one("Identity", [value]) for value in _some(body)]
    graph = _graph(body, "scan", [*inner, *slices], [*results, *rounds])
    directions = [scope.chance.randint(0, 1) for _ in values]
    attributes: dict[str, Any] = {
        "body": graph,
        "num_scan_inputs": len(values),
        "scan_input_axes": axes,
        "scan_input_directions": directions,
        "scan_output_axes": [scope.chance.randint(0, value.rank) for value in rounds],
        "scan_output_directions": [scope.chance.randint(0, 1) for _ in rounds],
    }
    scope.add(
        "Scan",
        [*states, *values],
        attributes,
        outputs=len(results) + len(rounds),
        captured=_captured(scope, graph),
    )


def sequence_map(scope: Scope, grow: Grow) -> None:
    """A body for each tensor of a sequence; it is a function, whose body captures nothing."""
    if scope.opset < 17:
        raise InvalidError
    value = scope.floats(1, 4)
    items = scope.one("SequenceConstruct", [value, value])
    body = scope.child()
    body.outer = None
    formal = _formal(body, value.data, exact=value.exact)
    grow(body, 2)
    graph = _graph(body, "each", [formal], [_own(body, _picked(body))])
    captured = _captured(scope, graph)
    mapped = scope.add("SequenceMap", [items], {"body": graph}, captured=captured)[0]
    scope.add("SequenceAt", [mapped, scope.constant(np.asarray(0, np.int64))])


def function(scope: Scope, grow: Grow) -> None:
    """A function of the model, called once or twice."""
    body = scope.child(is_function=True)
    values = [scope.pick(lambda v: v.rank >= 1) for _ in range(_one_or_two(scope))]
    formals = [_formal(body, value.data, exact=value.exact) for value in values]
    grow(body, scope.chance.randint(1, 5))
    results = [_own(body, value) for value in _some(body)]
    names = [result.name for result in results]
    attributes: dict[str, Any] = {}
    if results[0].rank >= 2 and scope.chance.random() < 0.5:
        names[0] = scope.model.name("v")
        turned = helper.make_node("Transpose", [results[0].name], [names[0]])
        turned.attribute.append(
            onnx.AttributeProto(name="perm", type=onnx.AttributeProto.INTS, ref_attr_name="turn")
        )
        body.nodes.append(turned)
        attributes["turn"] = scope.order(results[0].rank)
    name = scope.model.name("Function")
    made = helper.make_function(
        FUNCTIONS,
        name,
        [formal.name for formal in formals],
        names,
        body.nodes,
        scope.model.imports(),
        sorted(attributes),
    )
    scope.model.functions.append(made)
    _call(scope, name, values, attributes, len(names))
    if scope.chance.random() < 0.4:
        again = [scope.alike(value) or value for value in values]
        _call(scope, name, again, attributes, len(names))


def _call(
    scope: Scope, name: str, values: Sequence[Value], attributes: dict[str, Any], outputs: int
) -> None:
    scope.add(name, values, attributes, outputs=outputs, domain=FUNCTIONS)


def _formal(body: Scope, data: Any, *, exact: bool = True) -> Value:
    """An input of a body, and what it holds in the first round."""
    value = Value(body.model.name("b"), np.asarray(data), exact)
    body.values.append(value)
    return value


def _graph(
    body: Scope, name: str, formals: Sequence[Value], results: Sequence[Value]
) -> onnx.GraphProto:
    # The lengths of results are claims, which a body may make or leave out.
    states_shape = body.chance.random() < 0.5
    outputs = [declared(value.name, value.data) for value in results]
    if not states_shape:
        for output in outputs:
            output.type.tensor_type.ClearField("shape")
    return helper.make_graph(
        body.nodes,
        body.model.name(name),
        [declared(value.name, value.data) for value in formals],
        outputs,
        [numpy_helper.from_array(value.data, value.name) for value in body.constants],
    )


def _captured(scope: Scope, graph: onnx.GraphProto) -> list[Value]:
    """The outer values that a body reads, whose lengths the evaluation of its node needs."""
    names = set(_read(graph))
    known = [*scope.visible(), *_constants(scope), *scope.model.inputs, *scope.model.constants]
    found = {value.name: value for value in known if value.name in names}
    return [found[name] for name in sorted(found)]


def _constants(scope: Scope) -> Iterator[Value]:
    yield from scope.constants
    if scope.outer is not None:
        yield from _constants(scope.outer)


def _read(graph: onnx.GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _read(attribute.g)


BODIES = (branch, branch, loop, loop, scan, scan, function, function, sequence_map)
