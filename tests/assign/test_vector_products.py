"""Products with a vector read their matrices in any order, and ONNX Runtime gives the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import relayout
from relayout.ops.measure import Objective
from tests.assign.layouting import assert_layouts
from tests.objectives import COUNTED
from tests.rewrite.rewriting import data_for, parse

Level = ort.GraphOptimizationLevel
LENGTHS = (2, 3, 4, 5)
PERMS = [perm for rank in (2, 3) for perm in permutations(range(rank)) if sorted(perm) != [*perm]]
LONGER = [(0, 1, 3, 2), (1, 2, 3, 0), (1, 2, 0, 3), (2, 1, 0, 3), (3, 2, 1, 0)]


def model(perm: tuple[int, ...], *, vector_first: bool, op: str = "MatMul") -> onnx.ModelProto:
    """A product of a vector with matrices under a Transpose."""
    shape = LENGTHS[: len(perm)]
    moved = [shape[axis] for axis in perm]
    summed = moved.pop(-2 if vector_first else -1)
    return parse(
        f"""g (float[{_text(shape)}] a, float[{summed}] v) => (float[{_text(moved)}] y) {{
            t = Transpose<perm=[{_text(perm)}]>(a)
            y = {op}({"v, t" if vector_first else "t, v"})
        }}"""
    )


def _text(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def run(model: onnx.ModelProto, feeds: dict[str, Any], level: Any) -> Any:
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    data = model.SerializeToString()
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


@pytest.mark.parametrize("target", ["onnx", "ort"])
@pytest.mark.parametrize("vector_first", [False, True], ids=["behind", "in front"])
@pytest.mark.parametrize("perm", [*PERMS, *LONGER], ids=str)
def test_matrices_in_any_order(perm: tuple[int, ...], vector_first: bool, target: str) -> None:
    """The numbers are numpy's at every level, where those of the given model may not be.

    A Transpose is left only for a result whose own axes change places, which is shorter.
    """
    given = model(perm, vector_first=vector_first)
    result = relayout.optimize(given, target=target, minimize="bytes")
    kept = [axis for axis in perm if axis != perm[-2 if vector_first else -1]]
    assert result.after.transposes == (0 if kept == sorted(kept) else 1)
    assert result.after.bytes_moved < result.before.bytes_moved
    assert not relayout.check_certificate(result.certificate(), given)
    feeds = {value.name: data_for(value) for value in given.graph.input}
    matrices, vector = feeds["a"].transpose(perm), feeds["v"]
    wanted = vector @ matrices if vector_first else matrices @ vector
    for level in (Level.ORT_DISABLE_ALL, Level.ORT_ENABLE_BASIC, Level.ORT_ENABLE_ALL):
        np.testing.assert_array_equal(run(result.model, feeds, level), wanted)


def test_a_fused_product_with_a_vector() -> None:
    given = model((0, 2, 1), vector_first=False, op="com.microsoft.FusedMatMul<alpha=2.0>")
    result = relayout.optimize(given, target="ort", minimize="bytes")
    assert [node.op_type for node in result.model.graph.node] == ["FusedMatMul"]
    feeds = {value.name: data_for(value) for value in given.graph.input}
    wanted = 2 * feeds["a"].transpose(0, 2, 1) @ feeds["v"]
    for level in (Level.ORT_DISABLE_ALL, Level.ORT_ENABLE_ALL):
        np.testing.assert_array_equal(run(result.model, feeds, level), wanted)


@pytest.mark.parametrize("objective", COUNTED)
def test_a_vector_that_a_gemm_makes(objective: Objective) -> None:
    """What a Gemm gives is squeezed to a vector: the matrices beside it are read as they lie."""
    assert_layouts(
        """g (float[1,3] x, float[3,5] b, float[5,4] a) => (float[4] y) <int64[1] axes = {0}> {
            m = Gemm(x, b)
            v = Squeeze(m, axes)
            t = Transpose<perm=[1,0]>(a)
            y = MatMul(t, v)
        }""",
        transposes=0,
        objective=objective,
    )


def test_several_lengths_that_only_the_run_tells() -> None:
    """No Reshape can state two of them, so only orders that need none are variants."""
    text = """g (float[{dims}] a, float[4] v) => (float[{result}] y) {{
        t = Transpose<perm=[{perm}]>(a)
        y = MatMul(t, v)
    }}"""
    assert_layouts(text.format(dims="N,4,M", result="N,M", perm="0,2,1"), transposes=0)
    assert_layouts(text.format(dims="4,N,M", result="N,M", perm="1,2,0"), transposes=1)
