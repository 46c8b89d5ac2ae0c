"""What excuses numbers of a compiled model: rounding of both sides, and no fault of its kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from relayout.backends.comparing import compare_compiled
from relayout.verify.runtimes import Feeds, Run
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
