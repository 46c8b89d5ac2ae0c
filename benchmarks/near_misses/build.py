"""A model under construction, whose tensors are small and known by shape."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, TypeProto, helper, numpy_helper
from onnx.shape_inference import InferenceError, infer_node_outputs

OPSET = 21
DOUBLE, FLOAT, INT, BOOL = (
    TensorProto.DOUBLE,
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.BOOL,
)
LARGEST = 300
Array = np.ndarray[Any, Any]


class UnfitError(Exception):
    """A node that is not valid, or too large."""


class Builder:
    """Nodes, constants and the types of all values so far."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.numbers = np.random.default_rng(rng.getrandbits(32))
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, TensorProto] = {}
        self.functions: list[onnx.FunctionProto] = []
        self.types: dict[str, TypeProto] = {}
        self.inputs: list[str] = []
        self.focus: str | None = None
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(d.dim_value for d in self.types[name].tensor_type.shape.dim)

    def kind(self, name: str) -> int:
        return self.types[name].tensor_type.elem_type

    def values(self, kind: int = DOUBLE, ranks: Sequence[int] = range(9)) -> list[str]:
        made = [*self.inputs, *(name for node in self.nodes for name in node.output)]
        return [n for n in made if self.kind(n) == kind and len(self.shape(n)) in ranks]

    def pick(self, ranks: Sequence[int] = range(9), kind: int = DOUBLE) -> str:
        """The value in focus, or mostly one of the last."""
        found = self.values(kind, ranks)
        if not found:
            raise UnfitError
        if self.focus in found:
            return self.focus
        return found[-1 - int(len(found) * self.rng.random() ** 2)]

    def input(self, shape: Sequence[int], kind: int = DOUBLE) -> str:
        name = f"x{len(self.inputs)}"
        self.types[name] = helper.make_tensor_type_proto(kind, list(shape))
        self.inputs.append(name)
        return name

    def constant(self, array: Array | Sequence[int]) -> str:
        array = np.asarray(array)
        name = f"c{len(self.constants)}"
        self.constants[name] = numpy_helper.from_array(array, name)
        kind = self.constants[name].data_type
        self.types[name] = helper.make_tensor_type_proto(kind, array.shape)
        return name

    def drawn(self, shape: Sequence[int]) -> str:
        """A constant of numbers: mostly generic, on purpose some with symmetry."""
        return self.constant(drawn(self.rng, self.numbers, shape))

    def add(
        self, op: str, inputs: Sequence[str], results: int = 1, domain: str = "", **given: Any
    ) -> str:
        """Adds a node; the name of its first result."""
        outputs = [self.name() for _ in range(results)]
        node = helper.make_node(op, inputs, outputs, domain=domain, **given)
        types = self._inferred(node)
        for name in outputs:
            shape = types[name].tensor_type.shape.dim if name in types else ()
            sizes = [dim.dim_value for dim in shape]
            open_ones = name not in types or not all(d.HasField("dim_value") for d in shape)
            if open_ones or min(sizes, default=1) < 1 or np.prod(sizes) > LARGEST:
                raise UnfitError
        self.types |= {name: types[name] for name in outputs}
        self.nodes.append(node)
        return outputs[0]

    def _inferred(self, node: onnx.NodeProto) -> dict[str, TypeProto]:
        try:
            return infer_node_outputs(
                onnx.defs.get_schema(node.op_type, OPSET, node.domain),
                node,
                {name: self.types[name] for name in node.input if name},
                {name: self.constants[name] for name in node.input if name in self.constants},
                opset_imports=[helper.make_opsetid("", OPSET)],
            )
        except (InferenceError, KeyError, TypeError, ValueError) as error:
            raise UnfitError from error

    def call(self, function: onnx.FunctionProto, inputs: Sequence[str], **given: Any) -> str:
        """Calls a function whose result is like its first operand."""
        if all(f.name != function.name for f in self.functions):
            self.functions.append(function)
        output = self.name()
        self.types[output] = self.types[inputs[0]]
        node = helper.make_node(function.name, inputs, [output], domain=function.domain, **given)
        self.nodes.append(node)
        return output

    def block(self, nodes: Sequence[onnx.NodeProto], output: str, kind: TypeProto) -> str:
        """Adds nodes whose last result has a known type."""
        self.nodes += nodes
        self.types[output] = kind
        return output

    def model(self) -> onnx.ModelProto:
        read = {name for node in _all_nodes(self.nodes) for name in node.input}
        left = [n for node in self.nodes for n in node.output if n not in read and n in self.types]
        ports = [helper.make_value_info(n, self.types[n]) for n in self.inputs]
        ends = [helper.make_value_info(n, self.types[n]) for n in left]
        held = [t for n, t in self.constants.items() if n in read]
        graph = helper.make_graph(self.nodes, "near", ports, ends, held)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("own", 1)]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=10, functions=self.functions
        )


def _all_nodes(nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    found = []
    for node in nodes:
        found.append(node)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found += _all_nodes(attribute.g.node)
                names = [output.name for output in attribute.g.output]
                found.append(onnx.NodeProto(input=names))
    return found


def drawn(rng: random.Random, numbers: np.random.Generator, shape: Sequence[int]) -> Array:
    shape = tuple(shape)
    way = rng.random()
    if way < 0.6:
        return numbers.normal(size=shape)
    if way < 0.7:
        return np.full(shape, rng.choice([0.5, 1.0, 2.0, 0.0, -1.0]))
    if way < 0.8:
        return numbers.integers(-2, 3, size=shape).astype(np.float64)
    array = numbers.normal(size=shape)
    if way < 0.9:  # the same along an axis
        axis = rng.randrange(max(len(shape), 1))
        return array if not shape else np.broadcast_to(array.take([0], axis), shape).copy()
    for axis in range(1, len(shape)):  # the same under an exchange of axes
        if shape[axis] == shape[axis - 1]:
            return array + array.swapaxes(axis, axis - 1)
    return array
