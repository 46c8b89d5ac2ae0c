"""A model in wider floats: what it computes with less rounding.

Given

    y = Gelu(MatMul(x, w))  on float32

Result

    m = MatMul(x, w); y = Cast(Gelu(Cast(m)))  on float64, but for the operators that
    ONNX Runtime has no such kernel of

float16 becomes float32 in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from relayout.verify.quantisers import graphs_of, tensors_of
from relayout.verify.runtimes import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

FROM_HALF: dict[int, int] = {TensorProto.FLOAT16: TensorProto.FLOAT}
FROM_SINGLE: dict[int, int] = {TensorProto.FLOAT: TensorProto.DOUBLE}
TYPE_ATTRIBUTES = ("to", "dtype")
NARROW = frozenset(
    (
        *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "AveragePool", "Celu", "Col2Im"),
        *("Conv", "ConvTranspose", "Cosh", "Det", "Elu", "Erf", "GRU", "Gelu"),
        *("GlobalAveragePool", "GlobalMaxPool", "HardSigmoid", "HardSwish", "Hardmax"),
        *("InstanceNormalization", "LRN", "LSTM", "LeakyRelu", "LpPool", "MaxUnpool", "Mean"),
        *("MeanVarianceNormalization", "Mish", "PRelu", "RNN", "Resize", "Selu", "Sinh"),
        *("Softplus", "Softsign", "Tan", "ThresholdedRelu"),
    )
)
"""Operators from floats to floats that ONNX Runtime computes in float32 at the most."""
WHOLE_OPERANDS = {
    **dict.fromkeys(("GRU", "LSTM", "RNN"), (4,)),
    **dict.fromkeys(("Col2Im", "MaxUnpool"), (1, 2)),
    "Resize": (3,),
}
"""Operands of these that are whole numbers: lengths and indices."""
NOT_WIDENED = frozenset(
    (
        *("Attention", "DequantizeLinear", "DynamicQuantizeLinear", "GroupNormalization"),
        *("NonMaxSuppression", "NonZero", "OneHot", "QuantizeLinear", "RoiAlign"),
        *("RotaryEmbedding", "Upsample"),
    )
)
"""Operators whose operands cannot all be wider floats."""
LARGEST = 1 << 28
"""Bytes of a model that is made twice as large."""


def widen(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in wider floats; refused where an operator cannot have them."""
    if model.ByteSize() > LARGEST:
        raise RefusedError("the model is too large to be made wider")
    if model.functions or any(t.external_data for t in tensors_of(model.graph)):
        raise RefusedError("models with functions or external data are not made wider")
    _Widening(_wider_types(model.graph)).run(model.graph)
    return model


def _wider_types(graph: onnx.GraphProto) -> dict[int, int]:
    """float32 stays where float16 becomes float32."""
    values = (*graph.input, *graph.output)
    types = {value.type.tensor_type.elem_type for value in values}
    types |= {tensor.data_type for tensor in tensors_of(graph)}
    has_half = TensorProto.FLOAT16 in types
    return FROM_HALF if has_half else FROM_SINGLE


def widened_feeds(feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs as the wider model takes them."""
    has_half = any(_type_name(value) == "float16" for value in feeds.values())
    narrow, wide = ("float16", np.float32) if has_half else ("float32", np.float64)
    return {name: _as(value, narrow, wide) for name, value in feeds.items()}


def _as(value: Any, narrow: str, wide: Any) -> Any:
    if isinstance(value, list):
        return [_as(part, narrow, wide) for part in value]
    return value.astype(wide) if _type_name(value) == narrow else value


def _type_name(value: Any) -> str:
    return "" if isinstance(value, list) else str(np.asarray(value).dtype.name)


@dataclass(frozen=True)
class _Widening:
    types: dict[int, int]

    def run(self, main: onnx.GraphProto) -> None:
        for tensor in tensors_of(main):
            self._widen_tensor(tensor)
        for graph in graphs_of(main):
            del graph.value_info[:]
            for value in (*graph.input, *graph.output):
                self._widen_type(value.type)
            nodes = [made for node in graph.node for made in self._node(node)]
            # Messages of the old list are copied before it is emptied.
            new = onnx.GraphProto(node=nodes)
            del graph.node[:]
            graph.MergeFrom(new)

    def _widen_tensor(self, tensor: onnx.TensorProto) -> None:
        if tensor.data_type not in self.types:
            return
        wider = helper.tensor_dtype_to_np_dtype(self.types[tensor.data_type])
        array = numpy_helper.to_array(tensor).astype(wider)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))

    def _widen_type(self, type_proto: onnx.TypeProto) -> None:
        kind = type_proto.WhichOneof("value")
        if kind == "tensor_type":
            tensor = type_proto.tensor_type
            tensor.elem_type = self.types.get(tensor.elem_type, tensor.elem_type)
        elif kind in ("sequence_type", "optional_type"):
            self._widen_type(getattr(type_proto, kind).elem_type)

    def _node(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """What replaces a node."""
        if node.domain not in ("", "ai.onnx") or node.op_type in NOT_WIDENED:
            raise RefusedError(f"{node.op_type} is not made wider")
        for attribute in node.attribute:
            if attribute.name in TYPE_ATTRIBUTES and attribute.i in self.types:
                attribute.i = self.types[attribute.i]
        if self.types is FROM_HALF:
            return [node]
        if node.op_type == "Constant":
            return [_widened_constant(node)]
        if node.op_type == "ConstantOfShape" and not node.attribute:
            zero = numpy_helper.from_array(np.zeros(1, np.float64))
            node.attribute.append(helper.make_attribute("value", zero))
        return _in_between(node) if node.op_type in NARROW else [node]


def _widened_constant(node: onnx.NodeProto) -> onnx.NodeProto:
    name = node.attribute[0].name
    if name not in ("value_float", "value_floats"):
        return node
    value = helper.get_attribute_value(node.attribute[0])
    tensor = numpy_helper.from_array(np.asarray(value, np.float64))
    return helper.make_node("Constant", [], list(node.output), name=node.name, value=tensor)


def _in_between(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """An operator on float32, between casts."""
    results = [name for name in node.output if name]
    whole = WHOLE_OPERANDS.get(node.op_type, ())
    reads = [name for i, name in enumerate(node.input) if name and i not in whole]
    before = [
        helper.make_node("Cast", [name], [f"{results[0]}/narrow/{i}"], to=TensorProto.FLOAT)
        for i, name in enumerate(reads)
    ]
    after = [
        helper.make_node("Cast", [f"{name}/narrow"], [name], to=TensorProto.DOUBLE)
        for name in results
    ]
    narrow = {name: cast.output[0] for name, cast in zip(reads, before, strict=True)}
    node.input[:] = [
        name if i in whole else narrow.get(name, name) for i, name in enumerate(node.input)
    ]
    node.output[:] = [f"{name}/narrow" if name else "" for name in node.output]
    return [*before, node, *after]
