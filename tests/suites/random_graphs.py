"""Random valid graphs made of the declared samples, with Transposes wherever they fit."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.ops import law
from tests.samples.sample import Array, Sample, counting
from tests.suites.building_blocks import (
    FLEXIBLE,
    JOINING,
    SECLUDED,
    SETTINGS,
    SMOOTH,
    Setting,
    samples_at,
)

OPERATORS_PER_GRAPH = 6
LARGEST_EXACT = 256
"""Sums of products of integers up to here stay exact in single precision."""
LARGEST_SIZE = 2000
REGIMES = ((2, 3, 4, 5, 2), (3, 3, 3, 3, 3), (1, 4, 1, 3, 2))


@dataclass(frozen=True, slots=True)
class Made:
    """A value of the graph and what it holds."""

    name: str
    data: Array
    exact: bool
    """Whether it holds integers that no order of summation changes."""


@dataclass(frozen=True, slots=True)
class RandomGraph:
    model: onnx.ModelProto
    feeds: Mapping[str, Array]
    exact: Mapping[str, bool]
    """For each output, whether its bytes must stay the same."""
    setting: Setting

    def run(self, model: onnx.ModelProto) -> list[Any]:
        with np.errstate(all="ignore"):
            return law.run(model, dict(self.feeds), self.setting.runtime)

    @property
    def op_types(self) -> set[str]:
        return {node.op_type for node in self.model.graph.node}


def random_graph(seed: int) -> RandomGraph:
    """The graph of a seed; graphs of consecutive seeds take different operators of an opset."""
    setting = SETTINGS[seed % len(SETTINGS)]
    chance = random.Random(seed)
    growth = _Growth(chance, setting, is_symbolic=seed % 4 == 3)
    for _ in range(chance.randint(1, 2)):
        growth.start()
    for op_type in _operators_of(setting, seed // len(SETTINGS)):
        growth.place(op_type)
        if chance.random() < 0.5:
            growth.transpose()
        if chance.random() < 0.4:
            growth.join()
    return growth.finish()


def graphs_for_all(setting: Setting) -> int:
    """After how many graphs of a setting each of its operators has been used."""
    return -(-len(samples_at(setting)) // OPERATORS_PER_GRAPH)


def _operators_of(setting: Setting, number: int) -> list[str]:
    """The operators of a graph; the next round over all operators combines them differently."""
    round_number, place = divmod(number, graphs_for_all(setting))
    names = sorted(samples_at(setting))
    random.Random(round_number).shuffle(names)
    return names[place :: graphs_for_all(setting)]


@dataclass(slots=True)
class _Parts:
    """The pieces of a graph; a copy of it is a step that can still be taken back."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: list[Made] = field(default_factory=list)
    constants: list[Made] = field(default_factory=list)
    values: list[Made] = field(default_factory=list)

    def copy(self) -> _Parts:
        return _Parts([*self.nodes], [*self.inputs], [*self.constants], [*self.values])


class _Growth:
    """Adds nodes to a graph, knowing at every step what each value holds."""

    def __init__(self, chance: random.Random, setting: Setting, *, is_symbolic: bool) -> None:
        self.chance = chance
        self.setting = setting
        self.is_symbolic = is_symbolic
        self.parts = _Parts()
        self.numbers = 0

    def start(self) -> None:
        """A graph input in one of the regimes of lengths."""
        rank = self.chance.randint(2, 5)
        shape = self.chance.sample(self.chance.choice(REGIMES), rank)
        self.parts.values.append(self._input(counting(*shape)))

    def place(self, op_type: str, attempts: int = 4) -> None:
        """Add a node of an operator: a sample of it on values at hand, or on its own data."""
        for attempt in range(attempts):
            sample = self.chance.choice(samples_at(self.setting)[op_type])
            if self._try(sample, alone=attempt == attempts - 1):
                return

    def transpose(self) -> None:
        """One or two Transposes of a value at hand."""
        found = [value for value in self.parts.values if value.data.ndim >= 2]
        if not found:
            return
        value = self.chance.choice(found)
        for _ in range(self.chance.randint(1, 2)):
            value = self._transposed(value, self._order(value.data.ndim))

    def join(self) -> None:
        """Two values that have the same axes, perhaps in other orders, come together."""
        found = [v for v in self.parts.values if v.data.ndim >= 2 and v.data.dtype == np.float32]
        if not found:
            return
        first = self.chance.choice(found)
        alike = [v for v in found if sorted(v.data.shape) == sorted(first.data.shape)]
        second = self._as_shape(self.chance.choice(alike), first.data.shape)
        op_type = self.chance.choice(("Add", "Sub", "Max", "Concat", "Where"))
        operands = [first, second]
        if op_type == "Where":
            operands.insert(0, self._constant(counting(*first.data.shape) % 2 > 0))
        axis = self.chance.randrange(first.data.ndim)
        attributes = {"axis": axis} if op_type == "Concat" else {}
        self._add(op_type, operands, attributes)

    def finish(self) -> RandomGraph:
        read = {name for node in self.parts.nodes for name in node.input}
        written = [name for node in self.parts.nodes for name in node.output if name]
        known = {value.name: value for value in self.parts.values}
        outputs = [
            known[name] for name in written if name not in read or self.chance.random() < 0.1
        ]
        graph = helper.make_graph(
            self.parts.nodes,
            "random",
            [self._declared(value) for value in self.parts.inputs],
            [_declared(value.name, value.data) for value in outputs],
            [numpy_helper.from_array(value.data, value.name) for value in self.parts.constants],
        )
        return RandomGraph(
            _with_inferred_outputs(_model(graph, self.setting)),
            {value.name: value.data for value in self.parts.inputs},
            {value.name: value.exact for value in outputs},
            self.setting,
        )

    def _try(self, sample: Sample, *, alone: bool) -> bool:
        before = self.parts.copy()
        operands = [
            self._operand(sample, index, alone=alone) for index in range(len(sample.inputs))
        ]
        if self._add(sample.op_type, operands, sample.attributes, sample):
            return True
        self.parts = before
        return False

    def _operand(self, sample: Sample, index: int, *, alone: bool) -> Made | None:
        if sample.inputs[index] is None:
            return None
        data = np.asarray(sample.inputs[index])
        if index in sample.constants:
            return self._stored(self._constant, data)
        found = None if alone else self._at_hand(sample, index, data)
        return found or self._stored(self._input, data)

    def _at_hand(self, sample: Sample, index: int, data: Array) -> Made | None:
        """A value some node gave, in an order in which the sample can take it."""
        is_open = index == _largest(sample.inputs) or (
            sample.op_type in JOINING and data.dtype == np.float32
        )
        if sample.op_type in SECLUDED or not is_open or data.ndim < 2:
            return None
        found = [v for v in self.parts.values if _serves(v, sample, data.shape)]
        found = [v for v in found if v.data.dtype == data.dtype]
        if not found or self.chance.random() < 0.1:
            return None
        value = self.chance.choice(found[-8:])
        if sorted(value.data.shape) == sorted(data.shape):
            return self._as_shape(value, data.shape)
        return self._maybe_transposed(value)

    def _stored(self, make: Any, data: Array) -> Made:
        """A new input or constant, often stored in another order than it is read in."""
        if data.ndim < 2 or self.chance.random() < 0.3:
            value: Made = make(data)
            return value
        order = self._order(data.ndim)
        stored: Made = make(np.ascontiguousarray(data.transpose(np.argsort(order))))
        return self._transposed(stored, order)

    def _input(self, data: Array) -> Made:
        value = Made(self._name("x"), data, _is_exact(data))
        self.parts.inputs.append(value)
        return value

    def _constant(self, data: Array) -> Made:
        value = Made(self._name("c"), data, _is_exact(data))
        self.parts.constants.append(value)
        return value

    def _as_shape(self, value: Made, shape: Sequence[int]) -> Made:
        """The value in one of the orders that have a shape."""
        lengths = value.data.shape
        orders = [
            order
            for order in permutations(range(len(shape)))
            if [lengths[axis] for axis in order] == list(shape)
        ]
        return self._transposed(value, self.chance.choice(orders))

    def _maybe_transposed(self, value: Made) -> Made:
        if self.chance.random() < 0.4:
            return value
        return self._transposed(value, self._order(value.data.ndim))

    def _transposed(self, value: Made, order: Sequence[int]) -> Made:
        """Through a new Transpose or, now and then, through an equal one that is there."""
        if list(order) == sorted(order) and self.chance.random() < 0.9:
            return value
        for node in self.parts.nodes:
            is_same = node.op_type == "Transpose" and node.input[0] == value.name
            if is_same and _axes(node) == list(order) and self.chance.random() < 0.6:
                return next(v for v in self.parts.values if v.name == node.output[0])
        name = self._name("t")
        self.parts.nodes.append(helper.make_node("Transpose", [value.name], [name], perm=order))
        made = Made(name, value.data.transpose(order), value.exact)
        self.parts.values.append(made)
        return made

    def _add(
        self,
        op_type: str,
        operands: Sequence[Made | None],
        attributes: Mapping[str, Any],
        sample: Sample | None = None,
    ) -> bool:
        """Add a node if it is valid and gives tensors that are not too large."""
        count, unused = (1, frozenset[int]()) if sample is None else (sample.outputs, sample.unused)
        names = ["" if place in unused else self._name("v") for place in range(count)]
        given = ["" if value is None else value.name for value in operands]
        node = helper.make_node(op_type, given, names, **attributes)
        results = _evaluated(node, [v for v in operands if v is not None], self.setting)
        if results is None or any(result.size > LARGEST_SIZE for result in results):
            return False
        self.parts.nodes.append(node)
        exact = all(value is None or value.exact for value in operands)
        exact = exact and (sample is None or sample.tolerance == 0)
        for name, result in zip(filter(None, names), results, strict=True):
            self.parts.values.append(Made(name, result, exact and _is_exact(result)))
        return True

    def _order(self, rank: int) -> list[int]:
        return self.chance.sample(range(rank), rank)

    def _name(self, kind: str) -> str:
        self.numbers += 1
        return f"{kind}{self.numbers}"

    def _declared(self, value: Made) -> onnx.ValueInfoProto:
        if not self.is_symbolic or value.data.ndim < 2:
            return _declared(value.name, value.data)
        shape = [f"{value.name}_{axis}" for axis in range(value.data.ndim)]
        return _declared(value.name, value.data, shape)


def _serves(value: Made, sample: Sample, shape: Sequence[int]) -> bool:
    if value.data.dtype.kind == "f" and not np.isfinite(value.data).all():
        return False
    if not value.exact and sample.op_type not in SMOOTH:
        return False
    if sample.op_type in FLEXIBLE:
        return value.data.ndim == len(shape)
    return sorted(value.data.shape) == sorted(shape)


def _largest(operands: Sequence[Array | None]) -> int:
    sizes = [0 if operand is None else operand.size for operand in operands]
    return sizes.index(max(sizes))


def _axes(node: onnx.NodeProto) -> list[int]:
    return [axis for attribute in node.attribute for axis in attribute.ints]


def _is_exact(data: Array) -> bool:
    if data.dtype.kind in "OSUb":
        return True
    if data.dtype.kind in "iu":
        return bool((np.abs(data.astype(np.float64)) <= LARGEST_EXACT).all())
    if data.dtype not in (np.float32, np.float64) or not np.isfinite(data).all():
        return False
    return bool((np.abs(data) <= LARGEST_EXACT).all() and (data == np.round(data)).all())


def _evaluated(
    node: onnx.NodeProto, operands: Sequence[Made], setting: Setting
) -> list[Array] | None:
    """What a node gives, or None if it is not valid on these operands."""
    given = {value.name: value.data for value in operands if value.data.ndim > 1}
    inputs = [_declared(name, data) for name, data in given.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    # Shape inference checks lengths and axes only where it knows them.
    known = {value.name: value.data for value in operands if value.data.ndim <= 1}
    constants = [numpy_helper.from_array(data, name) for name, data in known.items()]
    model = _model(helper.make_graph([node], "node", inputs, outputs, constants), setting)
    try:
        with np.errstate(all="ignore"):
            results = [np.asarray(x) for x in law.run(model, given, setting.runtime)]
        for declared, result in zip(model.graph.output, results, strict=True):
            declared.CopyFrom(_declared(declared.name, result))
        onnx.checker.check_model(model, full_check=True)
    except Exception:  # noqa: BLE001 - runtimes reject invalid nodes in many ways
        return None
    return results


def _model(graph: onnx.GraphProto, setting: Setting) -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", setting.opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=law.IR_VERSION)


def _with_inferred_outputs(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with outputs that declare, beyond their rank, only what follows from its inputs."""
    ranks = [len(output.type.tensor_type.shape.dim) for output in model.graph.output]
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    for output, found, rank in zip(model.graph.output, inferred.graph.output, ranks, strict=True):
        output.CopyFrom(found)
        if not found.type.tensor_type.HasField("shape"):
            output.type.tensor_type.shape.dim.extend([onnx.TensorShapeProto.Dimension()] * rank)
            output.type.tensor_type.shape.SetInParent()
    return model


def _declared(
    name: str, data: Array, shape: Sequence[int | str] | None = None
) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(data.dtype)
    return helper.make_tensor_value_info(name, kind, data.shape if shape is None else shape)
