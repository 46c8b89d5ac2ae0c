"""Products of integers, which runtimes multiply as they are stored: no flags, few Einsums."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidGraph
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

from relayout.assign.choose import ChooseLayouts
from relayout.assign.terms import Terms
from relayout.graph.io.load import load
from relayout.graph.io.save import to_proto
from relayout.ops.einsum import EINSUM_TYPES
from relayout.ops.measure import Objective, measure
from relayout.ops.product import GEMM_TYPES
from relayout.optimizer.pipeline import layouts
from relayout.targets.ort import FUSED_TYPES
from relayout.targets.target import target_of
from tests.ops.law import run
from tests.rewrite.rewriting import data_for, parse

INTEGERS = ("int32", "int64", "uint32", "uint64")


def runs(dtype: str, op_type: str, domain: str = "", **attributes: Any) -> bool:
    """Whether ONNX Runtime has a kernel of a product for a type, and it is right."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    values = [helper.make_tensor_value_info(name, kind, [2, 2]) for name in "aby"]
    node = helper.make_node(op_type, ["a", "b"], ["y"], domain=domain, **attributes)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    a, b = np.array([[1, 2], [3, 4]], dtype), np.array([[5, 6], [7, 8]], dtype)
    try:
        (got,) = run(model, {"a": a, "b": b}, "ort")
    except (NoKernel, InvalidGraph):
        return False
    return bool((got == a.T @ b).all()) if attributes else bool((got == a @ b).all())


@pytest.mark.parametrize("dtype", INTEGERS)
def test_only_what_the_runtime_has_kernels_for_is_offered(dtype: str) -> None:
    kind = ir.DataType.from_numpy(np.dtype(dtype))
    assert runs(dtype, "MatMul")
    assert runs(dtype, "Gemm", transA=1) is (kind in GEMM_TYPES)
    assert runs(dtype, "Einsum", equation="ji,jk->ik") is (kind in EINSUM_TYPES)
    assert runs(dtype, "FusedMatMul", "com.microsoft", transA=1) is (kind in FUSED_TYPES)


def test_the_probe_finds_kernels() -> None:
    assert runs("float32", "Gemm", transA=1)
    assert runs("float32", "FusedMatMul", "com.microsoft", transA=1)


def text(dtype: str, sides: str, *, length: int = 2, batch: str = "") -> str:
    """A product [5,3] by [3,length] under Transposes of its sides: `a`, `b`, and `y`."""
    perm = "0,2,1" if batch else "1,0"
    given = {"a": "5,3", "b": f"3,{length}", "y": f"5,{length}"}
    shapes = {
        name: f"{dtype}[{batch}{','.join(reversed(shape.split(','))) if name in sides else shape}]"
        for name, shape in given.items()
    }
    swaps = [f"{name}_t = Transpose<perm=[{perm}]>({name})" for name in "ab" if name in sides]
    left, right = (f"{name}_t" if name in sides else name for name in "ab")
    product = f"{'m' if 'y' in sides else 'y'} = MatMul({left}, {right})"
    last = [f"y = Transpose<perm=[{perm}]>(m)"] if "y" in sides else []
    body = "\n".join([*swaps, product, *last])
    return f"g ({shapes['a']} a, {shapes['b']} b) => ({shapes['y']} y) {{ {body} }}"


def left_of(model: str, objective: Objective, target: str = "onnx") -> int:
    """How many Transposes are left, in a model that ONNX Runtime computes the same with."""
    given = parse(model)
    loaded = load(given)
    runtime = target_of(target, einsum=None, objective=objective)
    layouts(runtime, ChooseLayouts(Terms(objective, runtime))).run(loaded.ir)
    result = to_proto(loaded)
    feeds: dict[str, Any] = {value.name: data_for(value) for value in given.graph.input}
    np.testing.assert_array_equal(run(result, feeds, "ort")[0], run(given, feeds, "ort")[0])
    onnx.checker.check_model(result)
    return measure(load(result).ir).transposes


LEAST = {"a": 1, "b": 1, "ab": 1, "y": 1, "ay": 1, "by": 1, "aby": 0}
"""By the sides that are transposed. Both factors exchanged make it one, or none for all three."""


@pytest.mark.parametrize("target", ["onnx", "ort"])
@pytest.mark.parametrize("batch", ["", "2,"], ids=["matrices", "batches"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_transposes_around_products(dtype: str, batch: str, target: str) -> None:
    found = {
        sides: left_of(text(dtype, sides, batch=batch), Objective.BYTES, target) for sides in LEAST
    }
    assert found == LEAST


@pytest.mark.parametrize("dtype", INTEGERS)
def test_where_transposes_are_counted_an_einsum_saves_the_last_one(dtype: str) -> None:
    """Unsigned integers have none; a detour over signed ones would copy more than a Transpose."""
    has_einsum = dtype in ("int32", "int64")
    for sides, least in LEAST.items():
        left = left_of(text(dtype, sides), Objective.COUNT)
        assert left == (0 if has_einsum else least)


@pytest.mark.parametrize("batch", ["", "2,"], ids=["matrices", "batches"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_product_with_one_column_needs_none(dtype: str, batch: str) -> None:
    """A column is a row by a Reshape, so the factors change places for nothing."""
    assert left_of(text(dtype, "a", length=1, batch=batch), Objective.BYTES) == 0


SIGNS = {("uint8", "uint8"): 0, ("int8", "int8"): 0, ("int8", "uint8"): 0, ("uint8", "int8"): 3}
"""What is left of three Transposes. Signed times unsigned bytes have no kernel everywhere."""


@pytest.mark.parametrize(("left", "right"), SIGNS)
@pytest.mark.parametrize("zeros", ["", "a", "b", "ab"])
def test_products_of_bytes(left: str, right: str, zeros: str) -> None:
    """The zero points go with their factors, and one that is left out is left out there."""
    operands = {"": "", "a": ", p", "b": ', "", q', "ab": ", p, q"}[zeros]
    model = f"""g ({left}[3,5] a, {right}[2,3] b) => (int32[2,5] y)
        <{left} p = {{1}}, {right} q = {{2}}> {{
        s = Transpose<perm=[1,0]>(a)
        t = Transpose<perm=[1,0]>(b)
        m = MatMulInteger(s, t{operands})
        y = Transpose<perm=[1,0]>(m)
    }}"""
    assert left_of(model, Objective.BYTES) == SIGNS[left, right]


def test_quantised_products_of_bytes() -> None:
    model = """g (uint8[3,5] a, uint8[2,3] b) => (uint8[2,5] y)
        <float f = {0.5}, uint8 p = {1}, float g = {0.25}, uint8 q = {2}> {
        s = Transpose<perm=[1,0]>(a)
        t = Transpose<perm=[1,0]>(b)
        m = QLinearMatMul(s, f, p, t, g, q, f, p)
        y = Transpose<perm=[1,0]>(m)
    }"""
    assert left_of(model, Objective.BYTES) == 0
