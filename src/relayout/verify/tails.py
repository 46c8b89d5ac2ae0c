"""Outputs whose small numbers are the tail of a function that runtimes round as they round 1.

Given

    y = Sigmoid(x),  x about -17

Results

    0.0 unoptimised and 8.9e-08 optimised in ONNX Runtime, 4.8e-08 in float64: it computes
    0.5 + p(x) / q(x), and an image where nothing is found consists of such numbers alone.
"""

from __future__ import annotations

import onnx

MOVES = frozenset(
    (
        *("Cast", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Transpose"),
        "Unsqueeze",
    )
)
"""Operators that give elements of their first operand."""


def outputs_of_sigmoids(model: onnx.ModelProto) -> frozenset[str]:
    """The outputs of a model that are elements of what a Sigmoid gives."""
    makers = {name: node for node in model.graph.node for name in node.output}
    return frozenset(
        value.name for value in model.graph.output if _is_of_sigmoid(value.name, makers)
    )


def _is_of_sigmoid(name: str, makers: dict[str, onnx.NodeProto]) -> bool:
    maker = makers.get(name)
    while maker is not None and not maker.domain and maker.op_type in MOVES:
        maker = makers.get(maker.input[0])
    return maker is not None and not maker.domain and maker.op_type == "Sigmoid"
