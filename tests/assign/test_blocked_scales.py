"""Scales per block follow the axis along which they are, or nothing moves, with the reason."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from relayout.api import Result, optimize
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal
from relayout.ops.registry import transport
from tests.ops import law
from tests.rewrite.rewriting import parse
from tests.samples.sample import Array, Sample, counting


def optimised(text: str, constants: dict[str, Array], minimize: str) -> Result:
    """The result; its numbers equal those of the model given to the bit, in two runtimes."""
    model = parse(text)
    for name, array in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    result = optimize(model, minimize=minimize, verify=False)
    random = np.random.default_rng(0)
    feeds = {
        value.name: random.integers(
            0, 50, [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        ).astype(onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
        for value in model.graph.input
    }
    expected = ReferenceEvaluator(model).run(None, feeds)
    for runtime in ("reference", "ort"):
        for one, other in zip(expected, law.run(result.model, feeds, runtime), strict=True):
            np.testing.assert_array_equal(other, one)
    return result


def scales(*shape: int) -> Array:
    """Powers of two, so that every product is exact."""
    found: Array = np.exp2(counting(*shape) % 3)
    return found.astype(np.float32)


def attributes(result: Result, op_type: str) -> dict[str, int]:
    (node,) = [node for node in result.model.graph.node if node.op_type == op_type]
    return {attribute.name: attribute.i for attribute in node.attribute}


by_each_objective = pytest.mark.parametrize("minimize", ["bytes", "count"])


@by_each_objective
@pytest.mark.parametrize(
    ("axis", "shape", "moved"), [(1, (2, 2, 6, 8), 3), (2, (2, 4, 3, 8), 1), (3, (2, 4, 6, 4), 2)]
)
def test_scales_of_features_follow_their_axis(
    axis: int, shape: tuple[int, ...], moved: int, minimize: str
) -> None:
    result = optimised(
        f"""g (uint8[2,6,8,4] x) => (float[2,6,8,4] y) {{
            t = Transpose<perm=[0,3,1,2]>(x)
            d = DequantizeLinear<axis={axis}, block_size=2>(t, scale, zero)
            r = Relu(d)
            y = Transpose<perm=[0,2,3,1]>(r)
        }}""",
        {"scale": scales(*shape), "zero": counting(*shape, dtype=np.uint8) % 7},
        minimize,
    )
    assert result.after.transposes == 0
    assert attributes(result, "DequantizeLinear") == {"axis": moved, "block_size": 2}


@by_each_objective
def test_scales_that_the_run_gives_follow_only_with_a_transpose_of_their_own(minimize: str) -> None:
    """They are smaller than what they scale, so transposing them moves the fewest bytes."""
    result = optimised(
        """g (uint8[2,6,8,4] x, float[2,4,3,8] scale) => (float[2,6,8,4] y) {
            t = Transpose<perm=[0,3,1,2]>(x)
            d = DequantizeLinear<axis=2, block_size=2>(t, scale)
            y = Transpose<perm=[0,2,3,1]>(d)
        }""",
        {},
        minimize,
    )
    assert result.after.transposes == 1
    assert attributes(result, "DequantizeLinear") == {"axis": 1, "block_size": 2}


@by_each_objective
def test_a_weight_with_blocks_is_transposed_at_compile_time(minimize: str) -> None:
    result = optimised(
        """g (float[3,8] x) => (float[3,6] y) {
            v = DequantizeLinear<axis=1, block_size=4>(weight, scale, zero)
            w = Transpose<perm=[1,0]>(v)
            y = MatMul(x, w)
        }""",
        {
            "weight": counting(6, 8, dtype=np.int8),
            "scale": scales(6, 2),
            "zero": counting(6, 2, dtype=np.int8),
        },
        minimize,
    )
    assert result.after.transposes == 0
    kept = [node.op_type for node in result.model.graph.node]
    assert kept.count("DequantizeLinear") == 1


@by_each_objective
def test_a_reshape_that_cuts_through_blocks_is_not_crossed(minimize: str) -> None:
    """The blocks lie along the merged axis, so its factors cannot move apart."""
    result = optimised(
        """g (uint8[2,3,4,5] x) => (float[2,12,5] y)
            <int64[3] merged = {2,12,5}> {
            t = Transpose<perm=[0,2,1,3]>(x)
            r = Reshape(t, merged)
            y = DequantizeLinear<axis=1, block_size=4>(r, scale, zero)
        }""",
        {"scale": scales(2, 3, 5), "zero": counting(2, 3, 5, dtype=np.uint8)},
        minimize,
    )
    assert result.after.transposes == 1


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 2)])
def test_a_scale_that_does_not_fit_is_refused_with_a_reason(shape: tuple[int, ...]) -> None:
    data, scale = counting(2, 3, 4, 5, dtype=np.uint8), scales(*shape)
    given = {"axis": 2, "block_size": 2}
    sample = Sample("DequantizeLinear", 21, [data, scale], given, runtime="ort")
    answer = transport(law.view_of(sample), Permutation.of(0, 2, 3, 1))
    assert isinstance(answer, Refusal)
    assert answer.reason == "DequantizeLinear has a scale that does not fit its axis"
