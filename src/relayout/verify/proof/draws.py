"""Operators that draw numbers: two of them are never one value, though they read the same."""

from __future__ import annotations

import onnx

DRAWING = (
    *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"),
    "RandomUniformLike",
)


def draws(node: onnx.NodeProto) -> bool:
    """Whether the operator may draw numbers; Dropout does if it is told to learn."""
    if node.op_type == "Dropout":
        return len(node.input) > 2 and bool(node.input[2])
    return node.op_type in DRAWING


def drawer(node: onnx.NodeProto) -> str:
    """What a draw is called: the same in both models where they are to draw the same."""
    return node.name or node.output[0]
