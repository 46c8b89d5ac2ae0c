"""A model of known lengths as a graph of builtins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir

from relayout.backends.litert.builder import GraphBuilder
from relayout.backends.litert.call import LiteCall, dtype_of
from relayout.backends.litert.flat_graph import FlatData, FlatGraph, FlatTensor
from relayout.backends.litert.lower.registry import (
    CONTRIB_DOMAIN,
    FOLDED,
    lowering_of,
    missing,
    missing_error,
)
from relayout.errors import RelayoutError, quoted
from relayout.graph.invariants import InvariantError
from relayout.graph.read import NodeView, constant_of, is_op, shape_of, version_of
from relayout.graph.region import KERNEL_DOMAIN, subgraphs_of
from relayout.ops.registry import facts_of
from relayout.targets.channels_last import KERNELS
from relayout.verify.interface import interface_of_model
from relayout.verify.runtimes import RUNTIMES, Derived, RefusedError

MOST_FOLDED = 1 << 20
"""Elements that a constant worked out here may have."""


def lowered(model: ir.Model) -> FlatGraph:
    """The graph; every operator without a builtin is named before anything else."""
    lacking = missing(model)
    if lacking:
        raise missing_error(lacking)
    return _ModelLowering(model).run()


class _ModelLowering:
    """Goes through the nodes of a model in their order."""

    def __init__(self, model: ir.Model) -> None:
        self.model = model
        self.graph = FlatGraph()
        self.build = GraphBuilder(self.graph)
        self.opsets = model.graph.opset_imports

    def run(self) -> FlatGraph:
        graph = self.model.graph
        reserved = [value.name or "" for value in (*graph.inputs, *graph.outputs)]
        self.graph.inputs = tuple(self._input(value) for value in graph.inputs)
        self.build.reserve(reserved)
        for name, value in graph.initializers.items():
            if value.const_value is not None:
                self._hold(value, value.const_value.numpy(), name)
        for node in graph:
            self._lower(node)
        self.graph.outputs = tuple(
            self._output(value, index) for index, value in enumerate(graph.outputs)
        )
        self.graph.remove_dead()
        return self.graph

    def _input(self, value: ir.Value) -> FlatTensor:
        """An input under its own name, in the type that callers give."""
        shape = shape_of(value)
        if shape is None or not all(isinstance(length, int) for length in shape):
            raise RelayoutError(
                f"the lengths of input {quoted(value.name or '')} are not known; "
                "give them by --shape or --dim"
            )
        kind = np.dtype(value.dtype.numpy()) if value.dtype is not None else dtype_of(None)
        lengths = tuple(length for length in shape if isinstance(length, int))
        tensor = FlatTensor(value.name or "", lengths, kind)
        self.build.scope = tensor.name
        self.build.values[value] = self.build.cast(tensor, dtype_of(value.dtype))
        return tensor

    def _hold(self, value: ir.Value, data: FlatData, name: str) -> None:
        kind = dtype_of(value.dtype) if value.dtype is not None else data.dtype
        self.build.values[value] = self.build.constant(data.astype(kind), hint=name)

    def _output(self, value: ir.Value, index: int) -> FlatTensor:
        """An output under its own name; a tensor that has another one already is copied."""
        tensor = self.build.values[value]
        given = self.model.graph.outputs[index]
        kind = np.dtype(given.dtype.numpy()) if given.dtype is not None else tensor.dtype
        self.build.scope = value.name or ""
        tensor = self.build.cast(tensor, kind)
        is_taken = tensor in self.graph.inputs or tensor.data is not None
        is_twice = any(self.build.values[other] is tensor for other in self._others(index))
        if is_taken or is_twice:
            target = self.build.constant(tensor.shape, np.int32)
            lengths = list(tensor.shape)
            tensor = self.build.put("RESHAPE", [tensor, target], tensor.shape, newShape=lengths)
        tensor.rename(value.name or tensor.name)
        return tensor

    def _others(self, index: int) -> list[ir.Value]:
        return [other for i, other in enumerate(self.model.graph.outputs) if i < index]

    def _lower(self, node: ir.Node) -> None:
        operands = tuple(None if v is None else self._tensor(v) for v in node.inputs)
        if self._folded(node, operands):
            return
        lowering = lowering_of(node)
        if lowering is None:
            raise missing_error([(node.domain, node.op_type)])
        self.build.scope = str(node.outputs[0].name)
        known = len(self.graph.operators)
        results = lowering(self._call(node, operands))
        found = [results] if isinstance(results, FlatTensor) else list(results)
        made = {tensor for each in self.graph.operators[known:] for tensor in each.outputs}
        for value, tensor in zip(node.outputs, found, strict=False):
            self.build.values[value] = tensor
            _check_shape(value, tensor)
            if tensor in made and not value.is_graph_output():
                tensor.rename(self.build.name(str(value.name)))
                made.remove(tensor)

    def _tensor(self, value: ir.Value) -> FlatTensor:
        if value not in self.build.values:
            raise RelayoutError(f"value {quoted(str(value.name))} is not known")
        return self.build.values[value]

    def _call(self, node: ir.Node, operands: tuple[FlatTensor | None, ...]) -> LiteCall:
        version = version_of(self.opsets, "" if node.domain == KERNEL_DOMAIN else node.domain)
        view = NodeView(node, version)
        if node.domain != KERNEL_DOMAIN:
            return LiteCall(view, node.op_type, operands, self.build)
        kernel = KERNELS[node.op_type]
        slots: list[FlatTensor | None] = [None] * kernel.arity
        for slot, operand in zip(kernel.slots, operands, strict=True):
            slots[slot] = operand
        return LiteCall(view, kernel.operator.op_type, tuple(slots), self.build)

    def _folded(self, node: ir.Node, operands: tuple[FlatTensor | None, ...]) -> bool:
        """Work out a node all of whose operands are constants; whether that was done."""
        tensor = constant_of(node.outputs[0])
        if tensor is not None:
            self._hold(node.outputs[0], tensor.numpy(), str(node.outputs[0].name))
            return True
        if _keeps_its_place(node):
            return False
        if any(operand is not None and operand.data is None for operand in operands):
            if node.op_type in FOLDED:
                raise missing_error([(node.domain, node.op_type)])
            return False
        steps = next((operand.steps for operand in operands if operand is not None), None)
        if steps is not None:
            return False
        results = _evaluated(node, operands, version_of(self.opsets, ""))
        if results is None:
            if node.op_type in FOLDED:
                raise RelayoutError(f"{node.op_type} makes a constant that is too large")
            return False
        for value, data in zip(node.outputs, results, strict=True):
            self._hold(value, np.asarray(data), str(value.name))
        return True


def _keeps_its_place(node: ir.Node) -> bool:
    """Whether a node is lowered even where all of its operands are constants."""
    return (
        node.domain in {KERNEL_DOMAIN, CONTRIB_DOMAIN}
        or is_op(node, "DequantizeLinear", "QuantizeLinear", "QLinearConv", "QLinearMatMul")
        or facts_of(node).numbers.draws
        or any(True for _ in subgraphs_of(node))
    )


def _check_shape(value: ir.Value, tensor: FlatTensor) -> None:
    """What is inferred of a value must hold for the tensor that holds it."""
    shape = shape_of(value)
    if shape is not None and (
        len(shape) != tensor.rank
        or any(isinstance(n, int) and n != m for n, m in zip(shape, tensor.shape, strict=True))
    ):
        name = quoted(str(value.name))
        raise InvariantError(f"{name} has shape {list(shape)}, its tensor {list(tensor.shape)}")


def _evaluated(
    node: ir.Node, operands: tuple[FlatTensor | None, ...], version: int
) -> list[FlatData] | None:
    """What a node makes of constants; None where it would be large, or no runtime has it."""
    message = ir.serde.serialize_node(node)
    names = [name for name in dict.fromkeys(message.input) if name]
    held = {
        name: operand.data
        for name, operand in zip(message.input, operands, strict=True)
        if operand is not None and operand.data is not None
    }
    if sum(np.size(data) for data in held.values()) > MOST_FOLDED or _is_large(node, operands):
        return None
    graph = onnx.helper.make_graph(
        [message],
        "folded",
        [onnx.helper.make_tensor_value_info(name, _element(held[name]), None) for name in names],
        [onnx.ValueInfoProto(name=name) for name in message.output],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", version)])
    found = _run(model, held)
    return None if any(np.size(each) > MOST_FOLDED for each in found or ()) else found


def _run(model: onnx.ModelProto, held: dict[str, FlatData]) -> list[FlatData] | None:
    """What the first runtime that can run a model makes of inputs."""
    source = Derived(bytes(model.SerializeToString()), Path())
    for runtime in RUNTIMES:
        try:
            return runtime.load(source, interface_of_model(model))(held)
        except RefusedError:
            continue
    return None


def _element(data: FlatData) -> int:
    return int(onnx.helper.np_dtype_to_tensor_dtype(data.dtype))


def _is_large(node: ir.Node, operands: tuple[FlatTensor | None, ...]) -> bool:
    """Whether a shape among the operands asks for more than is worked out."""
    last = operands[-1]
    if last is None or last.data is None or not is_op(node, "ConstantOfShape", "Expand", "Tile"):
        return False
    return float(np.prod(last.data.astype(np.float64))) > MOST_FOLDED
