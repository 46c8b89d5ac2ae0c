"""The smooth version of a model computes what the model does, but for rounding."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from relayout.verify.smooth import NotSmoothError, smooth

HEADER = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>\n'
GRID = "float s = {0.5}, uint8 z = {3}"
LOWEST, HIGHEST = -1.5, 126.0


def saved(text: str, folder: Path) -> Path:
    onnx.save(onnx.parser.parse_model(HEADER + text), folder / "model.onnx")
    return folder / "model.onnx"


def outputs(text: str, folder: Path, *feeds: Any) -> Any:
    """What the smooth version of a model computes."""
    session = onnxruntime.InferenceSession(
        smooth(onnx.load(saved(text, folder)), folder).SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    names = [value.name for value in session.get_inputs()]
    return session.run(None, dict(zip(names, feeds, strict=True)))[0]


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).uniform(-200, 200, shape).astype(np.float32)


def test_a_pair_keeps_its_range_and_rounds_nothing(tmp_path: Path) -> None:
    text = f"""g (float[4,5] x) => (float[4,5] y) <{GRID}> {{
        q = QuantizeLinear(x, s, z)
        y = DequantizeLinear(q, s, z)
    }}"""
    x = numbers(4, 5)
    np.testing.assert_array_equal(outputs(text, tmp_path, x), x.clip(LOWEST, HIGHEST))


@pytest.mark.parametrize("zero", ["int8 z = {3}", "uint16 z = {3}", "int16 z = {3}"])
def test_the_range_is_that_of_the_type(zero: str, tmp_path: Path) -> None:
    text = f"""g (float[4,5] x) => (float[4,5] y) <float s = {{0.5}}, {zero}> {{
        q = QuantizeLinear(x, s, z)
        y = DequantizeLinear(q, s, z)
    }}"""
    limits, x = np.iinfo(zero.partition(" ")[0]), 1000 * numbers(4, 5)
    wanted = x.clip(0.5 * (limits.min - 3), 0.5 * (limits.max - 3))
    np.testing.assert_array_equal(outputs(text, tmp_path, x), wanted)


def test_without_a_zero_point_bytes_are_unsigned(tmp_path: Path) -> None:
    text = """g (float[4,5] x) => (float[4,5] y) <float s = {0.5}> {
        q = QuantizeLinear(x, s)
        y = DequantizeLinear(q, s)
    }"""
    x = numbers(4, 5)
    np.testing.assert_array_equal(outputs(text, tmp_path, x), x.clip(0.0, 127.5))


@pytest.mark.parametrize(("axis", "shape"), [(1, (1, 3, 1)), (-3, (3, 1, 1))])
def test_a_scale_per_index_of_an_axis(axis: int, shape: tuple[int, ...], tmp_path: Path) -> None:
    text = f"""g (float[3,3,4] x) => (float[3,3,4] y)
        <float[3] s = {{0.5, 0.25, 1}}, int8[3] z = {{0, 3, -3}}> {{
        q = QuantizeLinear<axis={axis}>(x, s, z)
        y = DequantizeLinear<axis={axis}>(q, s, z)
    }}"""
    x = numbers(3, 3, 4)
    scale = np.array([0.5, 0.25, 1], np.float32).reshape(shape)
    zero = np.array([0, 3, -3]).reshape(shape)
    wanted = x.clip(scale * (-128 - zero), scale * (127 - zero))
    np.testing.assert_array_equal(outputs(text, tmp_path, x), wanted)


def test_a_scale_that_the_run_computes(tmp_path: Path) -> None:
    text = """g (float[4,5] x, float s) => (float[4,5] y) <uint8 z = {3}> {
        q = QuantizeLinear(x, s, z)
        y = DequantizeLinear(q, s, z)
    }"""
    x = numbers(4, 5)
    wanted = x.clip(LOWEST, HIGHEST)
    np.testing.assert_array_equal(outputs(text, tmp_path, x, np.array(0.5, np.float32)), wanted)


MOVED = f"""g (float[2,6] x, float[2,6] w) => (float[3,8] y)
    <{GRID}, float s2 = {{0.5}}, uint8 z2 = {{3}}, int64[2] shape = {{4, 3}}> {{
    q = QuantizeLinear(x, s, z)
    r = QuantizeLinear(w, s2, z2)
    a = Reshape(q, shape)
    b = Reshape(r, shape)
    c = Concat<axis=0>(a, b)
    d = Transpose<perm=[1,0]>(c)
    y = DequantizeLinear(d, s2, z2)
}}"""


def test_bytes_are_moved_as_numbers(tmp_path: Path) -> None:
    x, w = numbers(2, 6), numbers(2, 6)[::-1].copy()
    wanted = np.concatenate([x.reshape(4, 3), w.reshape(4, 3)]).T.clip(LOWEST, HIGHEST)
    np.testing.assert_array_equal(outputs(MOVED, tmp_path, x, w), wanted)


def test_records_of_types_of_bytes_go(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(HEADER + MOVED)
    onnx.save(onnx.shape_inference.infer_shapes(model), tmp_path / "inferred.onnx")
    made = smooth(onnx.load(tmp_path / "inferred.onnx"), tmp_path)
    assert [value.name for value in made.graph.value_info] == []
    onnx.checker.check_model(made, full_check=True)


def test_what_depends_on_constants_stays(tmp_path: Path) -> None:
    """A quantised weight, also one that is moved or quantised at run time, has its numbers."""
    text = f"""g (float[2,3] x) => (float[2,3] y)
        <{GRID}, uint8[3] w = {{5, 6, 7}}, float[3] v = {{0.6, 0.1, 0.9}},
         int64[2] one = {{1, 3}}> {{
        q = QuantizeLinear(x, s, z)
        d = DequantizeLinear(q, s, z)
        m = Reshape(w, one)
        e = DequantizeLinear(m, s, z)
        a = Add(d, e)
        r = QuantizeLinear(v, s, z)
        f = DequantizeLinear(r, s, z)
        y = Add(a, f)
    }}"""
    x = numbers(2, 3)
    wanted = x.clip(LOWEST, HIGHEST) + np.array([1.5, 1.5, 3.0], np.float32)
    np.testing.assert_allclose(outputs(text, tmp_path, x), wanted, rtol=1e-6)


def test_external_data_is_read_where_it_lies(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(HEADER + MOVED)
    place = tmp_path / "external.onnx"
    onnx.save(model, place, save_as_external_data=True, location="data.bin", size_threshold=0)
    made = smooth(onnx.load(place, load_external_data=False), place.parent)
    kinds = Counter(node.op_type for node in made.graph.node)
    assert (kinds["Max"], kinds["Identity"], kinds["QuantizeLinear"]) == (2, 1, 0)


def computed(statements: str, result: str = "float[4,4] y") -> str:
    """A model that does something else with a quantised tensor of 4 by 4."""
    return f"""g (float[4,4] x, uint8[4,4] u) => ({result})
        <{GRID}, float t = {{0.25}}, uint8[1,4] byte = {{1, 2, 3, 4}},
         int64[4] p = {{0, 1, 0, 0}}> {{
        q = QuantizeLinear(x, s, z)
        {statements}
    }}"""


REFUSED = {
    "QLinearMatMul computes in whole numbers": computed(
        "m = QLinearMatMul(q, s, z, q, s, z, s, z) y = DequantizeLinear(m, s, z)"
    ),
    "DynamicQuantizeLinear computes in whole numbers": computed(
        "d, e, f = DynamicQuantizeLinear(x) y = DequantizeLinear(d, e, f)"
    ),
    "Pad computes with quantised numbers": computed(
        "m = Pad(q, p) y = DequantizeLinear(m, s, z)", "float[4,5] y"
    ),
    "Cast computes with quantised numbers": computed("y = Cast<to=1>(q)"),
    "Concat computes with quantised numbers": computed(
        "m = Concat<axis=0>(q, byte) y = DequantizeLinear(m, s, z)", "float[5,4] y"
    ),
    "MaxPool gives the indices of the largest quantised numbers": computed(
        """a = Unsqueeze(q, p) m, y = MaxPool<kernel_shape=[2,2]>(a)""", "int64[1,1,3,3] y"
    ),
    "'q' is quantised and dequantised by different scales": computed(
        "y = DequantizeLinear(q, t, z)"
    ),
    "'u' is dequantised, but not the result of a quantiser": computed(
        "y = DequantizeLinear(u, s, z)"
    ),
    "output 'q' is quantised": computed("y = Relu(x)", "float[4,4] y, uint8[4,4] q"),
    "a quantiser is in a body of If": """g (float[4] x, bool c) => (float[4] y)
        <float s = {0.5}, uint8 z = {3}> {
        y = If(c) <
            then_branch = a () => (float[4] v) {
                q = QuantizeLinear(x, s, z)
                v = DequantizeLinear(q, s, z)
            },
            else_branch = b () => (float[4] w) { w = Identity(x) }
        >
    }""",
    "If computes with quantised numbers": """g (float[4] x, bool c) => (float[4] y)
        <float s = {0.5}, uint8 z = {3}> {
        q = QuantizeLinear(x, s, z)
        r = If(c) <
            then_branch = a () => (uint8[4] v) { v = Identity(q) },
            else_branch = b () => (uint8[4] w) { w = Identity(q) }
        >
        y = DequantizeLinear(r, s, z)
    }""",
    "the zero point 'o' is computed": """g (float[4] x, uint8 o) => (float[4] y)
        <float s = {0.5}> {
        q = QuantizeLinear(x, s, o)
        y = DequantizeLinear(q, s, o)
    }""",
    "'q' is of type float8e4m3fn": """g (float[4] x) => (float[4] y) <float s = {0.5}> {
        q = QuantizeLinear<output_dtype=17>(x, s)
        y = DequantizeLinear(q, s)
    }""",
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_has_no_smooth_version_has_a_reason(reason: str, tmp_path: Path) -> None:
    with pytest.raises(NotSmoothError, match=f"^{reason}$"):
        smooth(onnx.load(saved(REFUSED[reason], tmp_path)), tmp_path)


def test_quantisers_in_functions_are_left_alone(tmp_path: Path) -> None:
    function = """<opset_import: ["" : 21], domain: "own">
        rounded (x) => (y) {
            s = Constant<value_float=0.5>()
            q = QuantizeLinear(x, s)
            y = DequantizeLinear(q, s)
        }"""
    header = HEADER.replace('"com.microsoft" : 1', '"own" : 1')
    text = f"{header}g (float[4] x) => (float[4] y) {{ y = own.rounded(x) }}\n{function}"
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    with pytest.raises(NotSmoothError, match="a quantiser is in a function"):
        smooth(onnx.load(tmp_path / "model.onnx"), tmp_path)
