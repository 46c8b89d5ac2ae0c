"""Linear layers as Gemms between Reshapes become products of tensors of any rank."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from relayout.rewrite.dead import remove_dead
from relayout.rewrite.linear_layers import GemmToMatMul
from relayout.rewrite.worklist import rewrite_model
from tests.rewrite.rewriting import assert_same_numbers, parse, to_ir

BETWEEN = """
g (float[2,4,3] x) => (float[{result}] y)
<int64[2] rows = {{-1, 3}}, int64[{rank}] back = {{{back}}}>
{{ r = Reshape(x, rows)
   m = Gemm<{attributes}>(r, w{bias})
   y = Reshape(m, back) }}
"""
ALONE = "g (float[8,3] x) => (float[8,5] y) { y = Gemm<transB = 1>(x, w, b) }"


def restated(text: str, matrix: tuple[int, int]) -> Counter[str]:
    given, drawn = parse(text), np.random.default_rng(0)
    given.graph.initializer.extend(
        onnx.numpy_helper.from_array(drawn.standard_normal(shape).astype(np.float32), name)
        for name, shape in {"w": matrix, "b": (5,)}.items()
    )
    model = to_ir(given)
    rewrite_model(model, [GemmToMatMul()])
    remove_dead(model)
    result = ir.to_proto(model)
    onnx.checker.check_model(result, full_check=True)
    assert_same_numbers(given, result, exact=False)
    return Counter(node.op_type for node in result.graph.node)


def between(attributes: str, bias: str = ", b", shape: str = "2,4,5") -> str:
    rank = shape.count(",") + 1
    return BETWEEN.format(result=shape, rank=rank, back=shape, attributes=attributes, bias=bias)


@pytest.mark.parametrize(
    ("attributes", "bias", "matrix", "sums"),
    [
        ("transB = 1", ", b", (5, 3), {"Add": 1}),
        ("alpha = 0.5, beta = 3.0", ", b", (3, 5), {"Add": 1}),
        ("alpha = 1.0", "", (3, 5), {}),
    ],
)
def test_reshapes_around_a_linear_layer_go(
    attributes: str, bias: str, matrix: tuple[int, int], sums: dict[str, int]
) -> None:
    assert restated(between(attributes, bias), matrix) == {"MatMul": 1, **sums}


def test_reshapes_to_other_axes_stay() -> None:
    counts = restated(between("alpha = 1.0", shape="4,2,5"), (3, 5))
    assert counts == {"Reshape": 2, "MatMul": 1, "Add": 1}


def test_a_layer_of_matrices() -> None:
    assert restated(ALONE, (5, 3)) == {"MatMul": 1, "Add": 1}


def test_a_transposed_operand_is_left() -> None:
    text = ALONE.replace("float[8,3] x", "float[3,8] x").replace("transB", "transA = 1, transB")
    assert restated(text, (5, 3)) == {"Gemm": 1}
