"""The table of kernels can be read without knowing the code."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from relayout.report.kernels import (
    CalibrationRecord,
    KernelOption,
    KernelRecord,
    calibration_text,
    operator_text,
    shape_text,
    time_text,
    window_text,
)

CHOSEN = KernelOption("library", "oneDNN fused, NHWC", 12.3e-6)
FAILING = KernelOption("triton", "tiles of 8x8 by 4", None, "no such kernel")
CONVOLUTION = KernelRecord(
    operator="Conv",
    input=(1, 64, 56, 56),
    output=(1, 128, 28, 28),
    window=(3, 3),
    strides=(2, 2),
    groups=1,
    bias=True,
    residual=True,
    activation="at least 0 and at most 6",
    dtype="float32",
    chosen=CHOSEN,
    options=(FAILING, CHOSEN),
)


def test_a_convolution_in_words() -> None:
    assert operator_text(CONVOLUTION) == "Conv, bias, residual, at least 0 and at most 6"
    assert shape_text(CONVOLUTION) == "1 64 56 56\n→ 1 128 28 28"
    assert window_text(CONVOLUTION) == "3x3, stride 2"


def test_what_is_usual_is_left_out() -> None:
    plain = replace(CONVOLUTION, strides=(1, 1), bias=False, residual=False, activation="")
    assert operator_text(plain) == "Conv"
    assert operator_text(replace(plain, dtype="float16")) == "Conv, float16"
    assert window_text(plain) == "3x3"
    assert window_text(replace(plain, window=(), strides=())) == ""
    assert shape_text(replace(plain, output=plain.input)) == "1 64 56 56"


def test_groups_and_depthwise_convolutions() -> None:
    assert window_text(replace(CONVOLUTION, groups=4)) == "3x3, stride 2, 4 groups"
    alike = replace(CONVOLUTION, output=(1, 64, 28, 28), groups=64, strides=(2, 1))
    assert window_text(alike) == "3x3, stride 2x1, depthwise"


def test_times() -> None:
    assert time_text(CHOSEN) == "12.3"
    assert time_text(replace(CHOSEN, is_noisy=True)) == "12.3 (noisy)"
    assert time_text(replace(CHOSEN, seconds=None)) == "not timed"
    assert time_text(FAILING) == "cannot run: no such kernel"


def test_the_chosen_kernel_comes_first_and_notices_last() -> None:
    console = Console(file=io.StringIO(), width=120)
    for part in calibration_text(CalibrationRecord("cpu", (CONVOLUTION,), ("something failed",))):
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert text.index("oneDNN") < text.index("tiles of") < text.index("note: something failed")
