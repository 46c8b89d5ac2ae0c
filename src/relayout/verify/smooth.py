"""The smooth version of a quantised model: its quantisers keep their range, but round nothing.

Given

    q = QuantizeLinear(x, scale, zero); r = Reshape(q, shape); y = DequantizeLinear(r, scale, zero)

Result

    lowest = DequantizeLinear(0, scale, zero); highest = DequantizeLinear(255, scale, zero)
    a = Max(x, lowest); q = Min(a, highest); r = Reshape(q, shape); y = Identity(r)

What is computed from constants alone stays as it is, so quantised weights are read as they are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from relayout.verify.quantisers import (
    Constants,
    Grid,
    bodies_of,
    captured_by,
    is_op,
    nodes_of,
    rounds,
    zero_point,
)

if TYPE_CHECKING:
    from pathlib import Path

Whole: TypeAlias = npt.NDArray[Any]
TYPES = (
    *(onnx.TensorProto.UINT8, onnx.TensorProto.INT8),
    *(onnx.TensorProto.UINT16, onnx.TensorProto.INT16),
)
"""What quantisers write."""
MOVES = (
    *("DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity"),
    *("MaxPool", "Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose"),
    "Unsqueeze",
)
"""Operators whose results are elements of their first operand, whatever these mean."""


class NotSmoothError(Exception):
    """Why a model has no smooth version."""


def smooth(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """The given model, made smooth; external data lies in a folder."""
    if any(rounds(node) for function in model.functions for node in function.node):
        raise NotSmoothError("a quantiser is in a function")
    _Smoothing(model.graph, Constants.of(model.graph, folder)).run()
    return model


@dataclass
class _Smoothing:
    graph: onnx.GraphProto
    constants: Constants
    real: dict[str, Grid] = field(default_factory=dict)
    """The values that were quantised and are real numbers now, with what they would be rounded to.
    """
    fixed: set[str] = field(default_factory=set)
    """The values that depend on constants alone."""
    taken: set[str] = field(default_factory=set)
    """The names that no new value can have."""

    def run(self) -> None:
        graph = self.graph
        self.fixed.update(self.constants.tensors)
        self.taken.update(name for node in nodes_of(graph) for name in (*node.input, *node.output))
        made = [new for node in graph.node for new in self._node(node)]
        for value in graph.output:
            if value.name in self.real:
                raise NotSmoothError(f"output '{value.name}' is quantised")
        infos = [value for value in graph.value_info if value.name not in self.real]
        # Messages of the old lists are copied before these are emptied.
        new = onnx.GraphProto(node=made, value_info=infos)
        del graph.node[:], graph.value_info[:]
        graph.MergeFrom(new)

    def _node(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """What replaces a node in the smooth version."""
        if any(rounds(inner) for body in bodies_of(node) for inner in nodes_of(body)):
            raise NotSmoothError(f"a quantiser is in a body of {node.op_type}")
        read = [name for name in (*node.input, *captured_by(node)) if name]
        if all(name in self.fixed for name in read):
            self.fixed.update(node.output)
            return [node]
        if is_op(node, "QuantizeLinear"):
            return self._quantiser(node)
        if is_op(node, "DequantizeLinear"):
            return [self._dequantiser(node)]
        if rounds(node):
            raise NotSmoothError(f"{node.op_type} computes in whole numbers")
        if any(name in self.real for name in read):
            self._pass_on(node, read)
        return [node]

    def _quantiser(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """Keep what a quantiser reads between the ends of its range."""
        value, result = node.input[0], node.output[0]
        self.real[result] = self.constants.grid(node)
        dtype = helper.tensor_dtype_to_np_dtype(self._element(node))
        limits = np.iinfo(dtype)
        above = self._new(f"{result}_above")
        lowest, to_lowest = self._end(node, np.array(limits.min, dtype))
        highest, to_highest = self._end(node, np.array(limits.max, dtype))
        return [
            *(*to_lowest, helper.make_node("Max", [value, lowest], [above])),
            *(*to_highest, helper.make_node("Min", [above, highest], [result], name=node.name)),
        ]

    def _end(self, node: onnx.NodeProto, whole: Whole) -> tuple[str, list[onnx.NodeProto]]:
        """The real number that an end of a quantiser's range stands for, and how it is made."""
        end, real = self._new(f"{node.output[0]}_end"), self._new(f"{node.output[0]}_real_end")
        scale = self.constants.array(node.input[1])
        back = helper.make_node("DequantizeLinear", [end, *node.input[1:]], [real])
        back.domain = node.domain
        back.attribute.extend(one for one in node.attribute if one.name in ("axis", "block_size"))
        if scale is None or scale.size > 1:
            return real, [*self._filled(end, whole, node.input[0]), back]
        self.graph.initializer.append(numpy_helper.from_array(whole, end))
        return real, [back]

    def _filled(self, name: str, whole: Whole, like: str) -> list[onnx.NodeProto]:
        """A tensor of one number, of the shape of another."""
        shape, value = self._new(f"{name}_shape"), numpy_helper.from_array(whole.reshape(1))
        return [
            helper.make_node("Shape", [like], [shape]),
            helper.make_node("ConstantOfShape", [shape], [name], value=value),
        ]

    def _element(self, node: onnx.NodeProto) -> int:
        """The type that a quantiser writes."""
        zero = zero_point(node)
        numbers = {attribute.name: attribute.i for attribute in node.attribute}
        if zero and zero not in self.constants.tensors:
            raise NotSmoothError(f"the zero point '{zero}' is computed")
        element = numbers.get("output_dtype") or onnx.TensorProto.UINT8
        element = self.constants.tensors[zero].data_type if zero else element
        if element not in TYPES:
            name = onnx.TensorProto.DataType.Name(element).lower()
            raise NotSmoothError(f"'{node.output[0]}' is of type {name}")
        return element

    def _dequantiser(self, node: onnx.NodeProto) -> onnx.NodeProto:
        value, result = node.input[0], node.output[0]
        if value not in self.real:
            raise NotSmoothError(f"'{value}' is dequantised, but not the result of a quantiser")
        if self.real[value] != self.constants.grid(node):
            raise NotSmoothError(f"'{value}' is quantised and dequantised by different scales")
        return helper.make_node("Identity", [value], [result], name=node.name)

    def _pass_on(self, node: onnx.NodeProto, read: list[str]) -> None:
        """Let the results of a move be what its operands are."""
        data = list(node.input) if is_op(node, "Concat") else list(node.input[:1])
        grids = {self.real.get(name) for name in data}
        is_move = is_op(node, "Concat", *MOVES) and len(grids) == 1 and None not in grids
        if not is_move or any(name in self.real for name in Counter(read) - Counter(data)):
            raise NotSmoothError(f"{node.op_type} computes with quantised numbers")
        if is_op(node, "MaxPool") and any(node.output[1:]):
            raise NotSmoothError("MaxPool gives the indices of the largest quantised numbers")
        self.real.update(dict.fromkeys(node.output, self.real[data[0]]))

    def _new(self, hint: str) -> str:
        name = hint
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name
