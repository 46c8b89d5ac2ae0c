"""Small models around the operators of the plugin."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import parser

GELU = """
<domain: "com.example", opset_import: ["" : 21]>
MyGelu (x) => (y) {
    rate = Constant<value_float = 1.702>()
    scaled = Mul(x, rate)
    gate = Sigmoid(scaled)
    y = Mul(x, gate)
}
"""
"""What runtimes that lack MyGelu run in its place, so that numbers can be compared."""

HEADER = '<ir_version: 10, opset_import: ["" : 21, "com.example" : 1]>\n'

BETWEEN_TRANSPOSES = """
g (float[1,4,5,3] x) => (float[1,4,5,3] y) {
    a = Transpose<perm=[0,3,1,2]>(x)
    b = com.example.MyGelu(a)
    y = Transpose<perm=[0,2,3,1]>(b)
}
"""


def model_of(graph: str, *functions: str) -> onnx.ModelProto:
    return parser.parse_model("".join((HEADER, graph, *functions)))


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """A file in which MyGelu stands between Transposes."""
    path = tmp_path / "given.onnx"
    path.write_bytes(model_of(BETWEEN_TRANSPOSES, GELU).SerializeToString())
    return path
