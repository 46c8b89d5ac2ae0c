"""Why attentions stay spelt out; decides nothing and edits nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import onnx_ir as ir

from relayout.graph.read import constant_of, is_op
from relayout.graph.region import regions_of
from relayout.layout.transport import Refusal
from relayout.rewrite.attention import raisable
from relayout.rewrite.attention_match import NOTHING_TO_GAIN
from relayout.rewrite.worklist import consumers
from relayout.targets.target import Target

FARTHEST = 8
"""How many nodes stand between a product and Softmax at most."""

PASSED = (
    *("Add", "Cast", "Clip", "Div", "Dropout", "Identity", "IsNaN", "Max", "Min", "Mul"),
    *("Reshape", "Squeeze", "Sub", "Tanh", "Transpose", "Unsqueeze", "Where"),
    *("QuantizeLinear", "DequantizeLinear"),
)
"""What exporters write between a product and Softmax."""


def spelt_out(model: ir.Model, target: Target) -> Iterator[tuple[ir.Node, str]]:
    """Every Softmax between two products that is not part of an operator, with the reason."""
    for region in regions_of(model):
        for node in region.graph:
            if not is_op(node, "Softmax") or not _is_between_products(node):
                continue
            answer = raisable(node, region, target)
            if isinstance(answer, Refusal) and answer is not NOTHING_TO_GAIN:
                yield node, answer.reason


def _is_between_products(softmax: ir.Node) -> bool:
    return _reaches_product(softmax, _producers) and _reaches_product(softmax, _consumers)


def _reaches_product(
    softmax: ir.Node, neighbours: Callable[[ir.Node], Iterable[ir.Node | None]]
) -> bool:
    """Whether a product of two values that the run computes is near on one side."""
    near = [softmax]
    for _ in range(FARTHEST):
        found = dict.fromkeys(node for each in near for node in neighbours(each) if node)
        if any(map(_is_product, found)):
            return True
        near = [node for node in found if is_op(node, *PASSED)]
    return False


def _is_product(node: ir.Node) -> bool:
    return is_op(node, "MatMul") and all(constant_of(value) is None for value in node.inputs)


def _producers(node: ir.Node) -> Iterable[ir.Node | None]:
    return [value.producer() for value in node.inputs if value is not None]


def _consumers(node: ir.Node) -> Iterable[ir.Node | None]:
    return [consumer for value in node.outputs for consumer in consumers(value)]
