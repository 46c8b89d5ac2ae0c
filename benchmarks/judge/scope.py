"""A graph that grows node by node, with what every value of it holds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.judge.running import (
    LARGEST,
    NEWEST_OF_ORT,
    Array,
    NotRunError,
    run,
    runtimes_for,
)

LARGEST_EXACT = 256
"""Sums of products of integers up to here stay exact in single precision."""
LARGEST_SIZE = 3000
FUNCTIONS = "judge.functions"
FAULTS_OF_REFERENCE = frozenset({"LogSoftmax"})
"""Operators that the reference computes wrongly: this one as a logarithm of numbers that are 0."""


class InvalidError(Exception):
    """A node that was tried is not valid on what it was given."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a graph, and what it holds for the first feeds."""

    name: str
    data: Any
    exact: bool
    """Whether it holds integers that no order of summation changes."""

    @property
    def rank(self) -> int:
        return int(np.ndim(self.data))

    @property
    def is_calm(self) -> bool:
        """Whether other nodes may read it: no number is about to overflow, or did."""
        return self.data.dtype.kind != "f" or bool(
            (np.abs(self.data.astype(np.float64)) <= LARGEST).all()
        )


@dataclass(slots=True)
class Interface:
    """What belongs to a whole model, whichever body asks for it."""

    opset: int
    chance: random.Random
    inputs: list[Value] = field(default_factory=list)
    constants: list[Value] = field(default_factory=list)
    functions: list[onnx.FunctionProto] = field(default_factory=list)
    placed: set[tuple[str, str]] = field(default_factory=set)
    """The operators that occur, by domain and name."""
    versions: dict[str, int] = field(default_factory=dict)
    """Those of the other domains that occur."""
    numbers: int = 0

    def name(self, kind: str) -> str:
        self.numbers += 1
        return f"{kind}{self.numbers}"

    def input(self, data: Array) -> Value:
        data = np.asarray(data)
        self.inputs.append(Value(self.name("x"), data, is_exact(data)))
        return self.inputs[-1]

    def initializer(self, data: Array) -> Value:
        data = np.asarray(data)
        self.constants.append(Value(self.name("c"), data, is_exact(data)))
        return self.constants[-1]

    def imports(self, domain: str = "", version: int = 1) -> list[onnx.OperatorSetIdProto]:
        """What the model imports, and a domain that it will import with its next node."""
        found = {"": self.opset, **self.versions}
        if found.setdefault(domain, version) != version and domain:
            raise InvalidError
        return [helper.make_opsetid(name, found[name]) for name in sorted(found)]


@dataclass(slots=True)
class Scope:
    """A graph, a body inside of it, or a function, which sees nothing outside."""

    model: Interface
    outer: Scope | None = None
    is_function: bool = False
    depth: int = 0
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[Value] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    @property
    def chance(self) -> random.Random:
        return self.model.chance

    @property
    def opset(self) -> int:
        return self.model.opset

    def child(self, *, is_function: bool = False) -> Scope:
        outer = None if is_function else self
        return Scope(self.model, outer, is_function or self.is_function, self.depth + 1)

    # values

    def visible(self) -> Iterator[Value]:
        """The values that nodes of this graph may read, those of outer graphs last."""
        yield from reversed(self.values)
        if self.outer is not None:
            yield from self.outer.visible()

    def pick(self, wanted: Callable[[Value], bool] = lambda _: True) -> Value:
        """Some value, more likely a new one."""
        found = [v for v in self.visible() if isinstance(v.data, np.ndarray) and v.is_calm]
        found = [value for value in found if value.data.dtype.kind in "fiub" and wanted(value)]
        if not found:
            raise InvalidError
        return found[min(int(self.chance.expovariate(0.35)), len(found) - 1)]

    def floats(self, least: int = 0, most: int = 6, *, exact: bool = False) -> Value:
        return self.pick(
            lambda v: (
                v.data.dtype == np.float32 and least <= v.rank <= most and (v.exact or not exact)
            )
        )

    def fresh(self, data: Array) -> Value:
        """New data: an input, or a constant of this graph or of the whole model."""
        kind = self.chance.random()
        if self.is_function or kind < 0.4:
            return self.constant(data)
        if kind < 0.6:
            return self.model.initializer(data)
        return self.model.input(data)

    def constant(self, data: Array) -> Value:
        value = Value(self.model.name("c"), np.asarray(data), is_exact(np.asarray(data)))
        is_node = self.is_function or self.chance.random() < 0.3
        if is_node and self.opset < 9 and value.data.dtype.kind != "f":
            raise InvalidError  # Constant gave floats only.
        if is_node:
            tensor = numpy_helper.from_array(value.data, value.name)
            self.nodes.append(helper.make_node("Constant", [], [value.name], value=tensor))
            self.model.placed.add(("", "Constant"))
        elif self.chance.random() < 0.3 and self.depth:
            return self.model.initializer(value.data)
        else:
            self.constants.append(value)
        return value

    def ints(self, *numbers: int) -> Value:
        return self.constant(np.asarray(numbers, np.int64))

    # nodes

    def one(self, op_type: str, operands: Sequence[Value | None], **attributes: Any) -> Value:
        return self.add(op_type, operands, attributes)[0]

    def add(
        self,
        op_type: str,
        operands: Sequence[Value | None],
        attributes: Mapping[str, Any] | None = None,
        *,
        outputs: int = 1,
        unused: frozenset[int] = frozenset(),
        domain: str = "",
        version: int = 1,
        rounds: bool = False,
        captured: Sequence[Value] = (),
    ) -> list[Value]:
        """Add a node, if it is valid and gives tensors that are not too large."""
        if op_type in FAULTS_OF_REFERENCE and self.opset > NEWEST_OF_ORT:
            raise InvalidError
        names = ["" if i in unused else self.model.name("v") for i in range(outputs)]
        given = ["" if value is None else value.name for value in operands]
        try:
            node = helper.make_node(op_type, given, names, domain=domain, **(attributes or {}))
        except ValueError as error:  # An empty list has no type.
            raise InvalidError from error
        read = [value for value in (*operands, *captured) if value is not None]
        imports = self.model.imports(domain, version)
        results = self._evaluated(node, read, imports)
        if any(isinstance(y, np.ndarray) and y.size > LARGEST_SIZE for y in results):
            raise InvalidError
        self.nodes.append(node)
        self.model.placed.add((domain, op_type))
        self.model.versions.update({domain: version} if domain else {})
        exact = not rounds and all(value.exact for value in read)
        made = [
            Value(name, y, exact and is_exact(y))
            for name, y in zip(filter(None, names), results, strict=True)
        ]
        self.values.extend(made)
        return made

    def _evaluated(
        self,
        node: onnx.NodeProto,
        read: Sequence[Value],
        imports: Sequence[onnx.OperatorSetIdProto],
    ) -> list[Any]:
        feeds = {value.name: value.data for value in read}
        inputs = [declared(name, data) for name, data in feeds.items()]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], "node", inputs, outputs)
        model = helper.make_model(
            graph, opset_imports=imports, ir_version=10, functions=self.model.functions
        )
        for runtime in runtimes_for(self.opset):
            try:
                found = run(model, feeds, runtime)
            except NotRunError:
                continue
            results = [y if isinstance(y, list) else np.asarray(y) for y in found]
            return _checked(model, results)
        raise InvalidError

    def transposed(self, value: Value, order: Sequence[int]) -> Value:
        """In another order; one without axes has none."""
        if not order:
            return self.one("Identity", [value])
        return self.one("Transpose", [value], perm=list(order))

    def as_shape(self, value: Value, shape: Sequence[int]) -> Value:
        """A value of the same lengths in another order, in the order of a shape."""
        free = list(range(value.rank))
        self.chance.shuffle(free)
        order = []
        for length in shape:
            axis = next(axis for axis in free if value.data.shape[axis] == length)
            free.remove(axis)
            order.append(axis)
        is_given = order == sorted(order)
        return value if is_given else self.transposed(value, order)

    def alike(self, value: Value, *, besides: frozenset[str] = frozenset()) -> Value | None:
        """Another value of this graph with the same type and lengths, in the same order."""
        found = [
            other
            for other in self.values
            if other.name not in besides
            and isinstance(other.data, np.ndarray)
            and other.data.dtype == value.data.dtype
            and sorted(other.data.shape) == sorted(value.data.shape)
        ]
        return self.as_shape(self.chance.choice(found), value.data.shape) if found else None

    def order(self, rank: int) -> list[int]:
        return self.chance.sample(range(rank), rank)


def _checked(model: onnx.ModelProto, results: list[Any]) -> list[Any]:
    """Runtimes take more than the standard allows."""
    outputs = [declared(o.name, y) for o, y in zip(model.graph.output, results, strict=True)]
    for output, given in zip(model.graph.output, outputs, strict=True):
        output.CopyFrom(given)
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # the checker raises several kinds
        raise InvalidError from error
    return results


def is_exact(data: Any) -> bool:
    if not isinstance(data, np.ndarray):
        return False
    if data.dtype.kind in "OSUb":
        return True
    if data.dtype.kind in "iu":
        return bool((np.abs(data.astype(np.float64)) <= LARGEST_EXACT).all())
    if data.dtype not in (np.float32, np.float64) or not np.isfinite(data).all():
        return False
    return bool((np.abs(data) <= LARGEST_EXACT).all() and (data == np.round(data)).all())


def declared(
    name: str, data: Any, shape: Sequence[int | str | None] | None = None
) -> onnx.ValueInfoProto:
    if isinstance(data, list) and data and isinstance(data[0], np.ndarray):
        kind = helper.np_dtype_to_tensor_dtype(data[0].dtype)
        return helper.make_tensor_sequence_value_info(name, kind, None)
    if not isinstance(data, np.ndarray):
        raise InvalidError
    kind = helper.np_dtype_to_tensor_dtype(data.dtype)
    return helper.make_tensor_value_info(name, kind, data.shape if shape is None else shape)
