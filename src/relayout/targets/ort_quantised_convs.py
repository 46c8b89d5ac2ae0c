"""Convolutions on bytes, which ONNX Runtime runs channels last wherever a model has its channels.

It writes Transposes around each, and moves them through what is computed alike in any order, until
they meet others and go, or stay in front of what has one order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from relayout.graph.read import NodeView, constant_of, is_op, is_standard, perm_of, shape_of
from relayout.layout.moves import Move
from relayout.layout.permutation import Permutation
from relayout.ops.measure import lengths_of
from relayout.targets.ort_quantised import RANKS, last_of
from relayout.targets.prices.table import RuntimePrices

BYTE = 1
STOPPING = frozenset(
    {
        *("Transpose", "Reshape", "Flatten", "Expand", "Gather", "GatherND", "ScatterND"),
        *("MatMul", "Gemm", "Einsum", "Conv", "ConvTranspose", "QLinearConv", "QLinearMatMul"),
        *("LayerNormalization", "InstanceNormalization", "LSTM", "GRU", "RNN"),
        *("DepthToSpace", "SpaceToDepth", "Attention", "If", "Loop", "Scan"),
    }
)
"""What Transposes are not moved through."""


@dataclass(slots=True)
class AroundConvolution:
    """What is around convolutions on bytes, as far as Transposes are moved away from them."""

    transposes: set[ir.Node] = field(default_factory=set)
    """Those of the model that meet one that is moved, so that both go."""
    borders: set[ir.Value] = field(default_factory=set)
    """Where one that is moved has to stay."""
    _seen: set[ir.Value] = field(default_factory=set)

    def look_up(self, value: ir.Value | None) -> None:
        """From a value that is read channels last to what makes it."""
        if value is None or value in self._seen or _is_small(value):
            return
        self._seen.add(value)
        maker = value.producer()
        if maker is not None and _is_carrying(maker):
            for each in maker.inputs:
                self.look_up(each)
        elif maker is not None and _order_is(maker, first=True):
            self.transposes.add(maker)
        elif maker is None or not is_convolution_on_bytes(maker):
            self.borders.add(value)

    def look_down(self, value: ir.Value) -> None:
        """From a value that is made channels last to what reads it."""
        if value in self._seen:
            return
        self._seen.add(value)
        readers = [reader for reader, _ in value.uses()]
        if not all(map(_goes_on, readers)) or value.is_graph_output():
            self.borders.add(value)
        for reader in readers:
            if _order_is(reader, first=False):
                self.transposes.add(reader)
            elif _is_carrying(reader):
                for result in reader.outputs:
                    self.look_down(result)


def joined_transposes(graph: ir.Graph) -> set[ir.Node]:
    """The Transposes of a graph that meet one that the runtime moves away from a convolution."""
    found: set[ir.Node] = set()
    for node in graph:
        if is_convolution_on_bytes(node):
            found |= _around(node).transposes
    return found


def border_price(view: NodeView, prices: RuntimePrices, dims: Mapping[str, int]) -> int:
    """Nanoseconds of the Transposes that stay around a convolution on bytes."""
    if not is_convolution_on_bytes(view.node):
        return 0
    return sum(_moved(value, prices, dims) for value in _around(view.node).borders)


def is_convolution_on_bytes(node: ir.Node) -> bool:
    """Whether a convolution is stated on bytes, or stands between quantisers."""
    if is_op(node, "QLinearConv"):
        return True
    if not is_op(node, "Conv"):
        return False
    makers = [None if value is None else value.producer() for value in node.inputs[:2]]
    readers = [reader for reader, _ in node.outputs[0].uses()]
    is_fed = all(is_op(maker, "DequantizeLinear") for maker in makers)
    return is_fed and bool(readers) and all(is_op(reader, "QuantizeLinear") for reader in readers)


def _around(convolution: ir.Node) -> AroundConvolution:
    found = AroundConvolution()
    found.look_up(convolution.inputs[0])
    found.look_down(convolution.outputs[0])
    return found


def _is_carrying(node: ir.Node) -> bool:
    return node.op_type not in STOPPING and (
        is_standard(node) or node.op_type.startswith("QLinear")
    )


def _goes_on(reader: ir.Node) -> bool:
    """Whether no Transpose has to stay in front of a reader of what is channels last."""
    is_free = is_convolution_on_bytes(reader) or _order_is(reader, first=False)
    return is_free or _is_carrying(reader)


def _order_is(node: ir.Node, *, first: bool) -> bool:
    """Whether a node brings channels first, or last."""
    order = perm_of(node) if is_op(node, "Transpose") else None
    if order is None or order.rank not in RANKS:
        return False
    last = last_of(order.rank)
    return order == (last.inverse() if first else last)


def _is_small(value: ir.Value) -> bool:
    """Whether a value is a parameter, such as a scale."""
    shape = shape_of(value)
    return constant_of(value) is not None or (shape is not None and len(shape) <= 1)


def _moved(value: ir.Value, prices: RuntimePrices, dims: Mapping[str, int]) -> int:
    shape = shape_of(value)
    if shape is None or len(shape) not in RANKS:
        return prices.node
    order: Permutation = last_of(len(shape))
    return prices.transpose(Move.of(lengths_of(shape, dims), order), BYTE)
