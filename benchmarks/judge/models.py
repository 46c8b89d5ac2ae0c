"""The model of a seed: random, valid, with several sets of inputs that it runs on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.judge.bodies import BODIES
from benchmarks.judge.known import known_at, place
from benchmarks.judge.leaves import LEAVES
from benchmarks.judge.running import (
    ORT,
    REFERENCE,
    NotRunError,
    Session,
    difference,
    nodes_of,
    run,
    runtimes_for,
)
from benchmarks.judge.scope import Interface, InvalidError, Scope, Value, declared
from benchmarks.judge.views import fresh, sandwich, transpose, view

OLDEST, NEWEST = 7, onnx.defs.onnx_opset_version()
OPERATORS_PER_MODEL = (1, 2, 1, 4)
"""Sizes of models, which take turns: small ones reach more pairs of operators in the same time."""
DEEPEST = 2
LENGTHS = (1, 2, 5)
"""What a symbolic length also stands for, where the model then runs."""
LENIENT = frozenset({"Concat", "Loop", "Scan"})
"""Operators that ONNX Runtime runs on lengths that no valid model has: it puts side by side what
the rounds of a Loop give also where their lengths differ, and does not ask for those of an operand
without elements."""


@dataclass(frozen=True, slots=True)
class Case:
    """Inputs of a model, and what it gives for them."""

    feeds: dict[str, Any]
    wanted: list[Any]
    exact: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Generated:
    model: onnx.ModelProto
    cases: tuple[Case, ...]
    runtime: str
    placed: frozenset[tuple[str, str]]


class DroppedError(Exception):
    """What was made is no valid model, or no runtime takes it."""


def generated(seed: int) -> Generated:
    """The model of a seed; the opsets take turns, and in each the operators that it has."""
    opset = OLDEST + seed % (NEWEST - OLDEST + 1)
    chance = random.Random(seed)
    model = Interface(opset, chance)
    scope = Scope(model)
    for _ in range(chance.randint(2, 4)):
        _try(scope, lambda: fresh(scope))
    for op_type in _turn(opset, seed // (NEWEST - OLDEST + 1)):
        _try(scope, lambda op_type=op_type: place(scope, op_type))
        grow(scope, chance.randint(1, 3))
    return _judged(scope)


def _turn(opset: int, number: int) -> list[tuple[str, str]]:
    """The operators of a model; the next round over all of an opset combines them differently."""
    names = sorted(known_at(opset))
    number, size = divmod(number, len(OPERATORS_PER_MODEL))
    rounds = -(-len(names) // OPERATORS_PER_MODEL[size])
    turn, first = divmod(number, rounds)
    random.Random(f"{turn} {size}").shuffle(names)
    return names[first::rounds]


def grow(scope: Scope, count: int) -> None:
    """Nodes of any kind; an attempt that gives none is taken back."""
    for _ in range(count):
        kind = scope.chance.random()
        if kind < 0.3:
            maker = scope.chance.choice((transpose, transpose, sandwich))
        elif kind < 0.5:
            maker = view
        elif kind < 0.55:
            maker = fresh
        elif kind < 0.68 and scope.depth < DEEPEST:
            body = scope.chance.choice(BODIES)
            _try(scope, lambda body=body: body(scope, grow))
            continue
        else:
            maker = scope.chance.choice(LEAVES)
        _try(scope, lambda maker=maker: maker(scope))


def _try(scope: Scope, attempt: Any) -> None:
    """Take back what an attempt added that fails."""
    lists: list[list[Any]] = [scope.nodes, scope.constants, scope.values, scope.model.functions]
    lengths = [len(found) for found in lists]
    placed = set(scope.model.placed)
    try:
        attempt()
    except InvalidError:
        for found, length in zip(lists, lengths, strict=True):
            del found[length:]
        scope.model.placed = placed


def _judged(scope: Scope) -> Generated:
    """The finished model, with what it gives."""
    outputs = list(_outputs(scope))
    if not outputs:
        raise DroppedError("nothing was made")
    model, symbols = _model(scope, outputs)
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        raise DroppedError(f"checker: {' '.join(str(error).split())[:150]}") from error
    first = {value.name: value.data for value in scope.model.inputs}
    exact = tuple(value.exact for value in outputs)
    session, wanted = _first_run(model, first, scope.opset)
    # The reference evaluator broadcasts lengths that the standard forbids.
    symbols = _free(symbols, first) if session.runtime == ORT else {}
    is_lenient = any(node.op_type in LENIENT for node in nodes_of(model))
    cases_of = _agreed_case if is_lenient else _case
    others = (cases_of(session, model, feeds) for feeds in _other_feeds(scope, first, symbols))
    cases = (Case(first, wanted, exact), *(case for case in others if case is not None))
    return Generated(model, cases, session.runtime, frozenset(scope.model.placed))


def _free(symbols: dict[str, dict[int, str]], feeds: dict[str, Any]) -> dict[str, dict[int, str]]:
    """Lengths that may be others: those of lists are often how many axes or channels there are."""
    bound = {name for key, axes in symbols.items() if feeds[key].ndim < 2 for name in axes.values()}
    return {
        key: {axis: name for axis, name in axes.items() if name not in bound}
        for key, axes in symbols.items()
    }


def _first_run(
    model: onnx.ModelProto, feeds: dict[str, Any], opset: int
) -> tuple[Session, list[Any]]:
    reasons = []
    for runtime in runtimes_for(opset):
        try:
            session = Session.of(model, runtime)
            wanted, again = (session.run(feeds) for _ in range(2))
        except NotRunError as error:
            reasons.append(f"{runtime}: {error}")
            continue
        if difference(wanted, again, [True] * len(wanted)):
            raise DroppedError(f"{runtime} gives other numbers each time")
        return session, wanted
    raise DroppedError("; ".join(reasons))


def _case(session: Session, _: onnx.ModelProto, feeds: dict[str, Any]) -> Case | None:
    try:
        wanted = session.run(feeds)
    except NotRunError:
        return None
    return Case(feeds, wanted, (False,) * len(wanted))


def _agreed_case(session: Session, model: onnx.ModelProto, feeds: dict[str, Any]) -> Case | None:
    """A case in which both runtimes agree."""
    case = _case(session, model, feeds)
    if case is None or session.runtime != ORT:
        return case
    try:
        found = run(model, feeds, REFERENCE)
    except NotRunError:
        return None
    return case if difference(case.wanted, found, case.exact) is None else None


def _other_feeds(
    scope: Scope, first: dict[str, Any], symbols: dict[str, dict[int, str]]
) -> Iterator[dict[str, Any]]:
    """Other branches and rounds; then other lengths."""
    turned = {
        name: _turned(data)
        for name, data in first.items()
        if data.ndim == 0 and data.dtype in (np.bool_, np.int64)
    }
    if turned:
        yield first | turned
    names = sorted({name for axes in symbols.values() for name in axes.values()})
    if names:
        lengths = {name: scope.chance.choice(LENGTHS) for name in names}
        yield first | {
            name: _resized(first[name], {axis: lengths[symbol] for axis, symbol in axes.items()})
            for name, axes in symbols.items()
        }


def _turned(data: Any) -> Any:
    return ~data if data.dtype == np.bool_ else np.asarray((int(data) + 1) % 4, np.int64)


def _resized(data: Any, lengths: dict[int, int]) -> Any:
    for axis, length in lengths.items():
        places = np.arange(length) % max(data.shape[axis], 1)
        data = data.take(places, axis) if data.shape[axis] else np.repeat(data, length, axis)
    return data


def _outputs(scope: Scope) -> Iterator[Value]:
    """What nothing reads, and some of the rest."""
    read = {name for node in scope.nodes for name in _read(node)}
    written = {name for node in scope.nodes if node.op_type != "Constant" for name in node.output}
    for value in scope.values:
        is_tensor = isinstance(value.data, np.ndarray)
        is_new = value.name in written and (value.name not in read or scope.chance.random() < 0.08)
        if is_tensor and is_new:
            yield value


def _read(node: onnx.NodeProto) -> Iterator[str]:
    yield from node.input
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from _read(inner)


def _model(scope: Scope, outputs: list[Value]) -> tuple[onnx.ModelProto, dict[str, dict[int, str]]]:
    """The message, and the symbols of its inputs by axis."""
    interface = scope.model
    symbols = {value.name: found for value in interface.inputs if (found := _symbols(scope, value))}
    inputs = [
        declared(
            value.name,
            value.data,
            [symbols.get(value.name, {}).get(a, n) for a, n in enumerate(value.data.shape)],
        )
        for value in interface.inputs
    ]
    constants = [
        numpy_helper.from_array(value.data, value.name)
        for value in (*scope.constants, *interface.constants)
    ]
    results = [onnx.ValueInfoProto(name=value.name) for value in outputs]
    for result, value in zip(results, outputs, strict=True):
        kind = helper.np_dtype_to_tensor_dtype(value.data.dtype)
        result.CopyFrom(helper.make_tensor_value_info(value.name, kind, [None] * value.rank))
    listed = _listed(scope) if interface.chance.random() < 0.1 else []
    graph = helper.make_graph(scope.nodes, "judged", [*inputs, *listed], results, constants)
    imports = interface.imports()
    newest = helper.find_min_ir_version_for(imports, ignore_unknown=True)
    version = max(newest, 8 if interface.functions else 4)
    model = helper.make_model(
        graph,
        opset_imports=imports,
        ir_version=version,
        functions=interface.functions,
    )
    return model, symbols


def _symbols(scope: Scope, value: Value) -> dict[int, str]:
    """Names of some of the lengths of an input; equal lengths may have the same one."""
    if scope.chance.random() < 0.5:
        return {}
    return {
        axis: f"n{length}" if scope.chance.random() < 0.5 else f"{value.name}_{axis}"
        for axis, length in enumerate(value.data.shape)
        if scope.chance.random() < 0.4
    }


def _listed(scope: Scope) -> list[onnx.ValueInfoProto]:
    """Constants that are listed among the inputs, so that a caller may replace them."""
    return [declared(value.name, value.data) for value in scope.constants if value.rank >= 1][:2]
