"""What excuses numbers of a compiled model: rounding of both sides, and no fault of its kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from relayout.backends.comparing import compare_compiled
from relayout.verify.interface import interface_of
from relayout.verify.runtimes import EXTENDED, ONNX_RUNTIME, Feeds, Run
from relayout.verify.verdict import NumericOptions

MODEL = """
<ir_version: 10, opset_import: ["" : 17]>
g (float[4,8] x) => (float[4,8] y) { y = Tanh(x) }
"""


def runner(fault: float) -> Run:
    def run(feeds: Feeds) -> list[np.ndarray]:
        return [np.tanh(feeds["x"]) + np.float32(fault)]

    return run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), file)
    return file


def verdict(path: Path, fault: float, other: float) -> bool:
    found = compare_compiled(
        path,
        "made up",
        lambda: runner(fault),
        NumericOptions(),
        load_other=lambda: runner(other),
    )
    return found.equal


def test_right_kernels_are_equal(path: Path) -> None:
    assert verdict(path, 0.0, 0.0)


@pytest.mark.parametrize("fault", [1e-1, 1e-3])
def test_kernels_that_differ_from_right_ones_are_no_excuse(path: Path, fault: float) -> None:
    assert not verdict(path, fault, 0.0)
    assert not verdict(path, fault, -fault)


ON_BYTES = """
<ir_version: 10, opset_import: ["" : 17]>
g (float[16,8] x) => (float[16,8] y)
<float xs = {0.1}, float ws = {0.1}, float ys = {0.02}, uint8 zero = {128}, int8 none = {0},
 int8[8,8] w = {WEIGHTS}> {
  q = QuantizeLinear(x, xs, zero)
  d = DequantizeLinear(q, xs, zero)
  v = DequantizeLinear(w, ws, none)
  p = MatMul(d, v)
  r = QuantizeLinear(p, ys, zero)
  y = DequantizeLinear(r, ys, zero) }
""".replace("WEIGHTS", ",".join(str(number % 9 - 4) for number in range(0, 64 * 5, 5)))


@pytest.mark.parametrize(("fault", "is_equal"), [(0.0, True), (0.02, False)])
def test_sums_of_bytes_are_compared_with_what_is_exact(
    tmp_path: Path, fault: float, is_equal: bool
) -> None:
    file = tmp_path / "bytes.onnx"
    onnx.save(onnx.parser.parse_model(ON_BYTES), file)
    plain, on_bytes = (level.load(file, interface_of(file)) for level in (ONNX_RUNTIME, EXTENDED))
    x = np.random.default_rng(0).standard_normal((16, 8), np.float32)
    assert (np.abs(plain({"x": x})[0] - on_bytes({"x": x})[0]) > 0.01).any()

    def run(feeds: Feeds) -> list[np.ndarray]:
        (result,) = on_bytes(feeds)
        result[3] += np.float32(fault)
        return [result]

    assert compare_compiled(file, "made up", lambda: run, NumericOptions()).equal == is_equal
