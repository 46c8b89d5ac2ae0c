"""The commands that measure report what they measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest

pytest.importorskip("torch")

from relayout.backends.torch.calibration import common_convolution
from relayout.cli import main

MOST_RUNS = 5
"""Of a command that measures, on a machine that may be busy."""


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "small.onnx"
    onnx.save(common_convolution((8, 16, 12, 3, 1, 1)), path)
    return str(path)


def test_bench_shows_torch_beside_the_given_model_in_onnx_runtime(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", model, "--seconds", "0.3", "--threads", "1", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    ways = {each["way"]: each for each in record["times"]}
    assert record["line"] == "ort, as given"
    for name in ("torch, fused kernels", "ort, as given"):
        assert 0 < ways[name]["low"] <= ways[name]["median"] <= ways[name]["high"]


def calibrated(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["calibrate", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def quiet_times(record: Any) -> dict[str, float]:
    """What is kept, by kernel and option: a kernel is kept if none of its options is noisy."""
    return {
        f"{_about(kernel)}: {option['kernel']}": option["seconds"]
        for kernel in record["kernels"]
        if not is_noisy(kernel)
        for option in kernel["options"]
    }


def _about(kernel: Any) -> str:
    return str({name: v for name, v in kernel.items() if name not in {"options", "chosen"}})


def test_calibrate_shows_what_is_chosen_and_keeps_it(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first = calibrated(capsys, model)
    convolution = first["kernels"][0]
    assert convolution["operator"] == "Conv"
    assert convolution["bias"]
    assert convolution["activation"] == "Relu"
    assert convolution["chosen"] in convolution["options"]
    names = {option["kernel"] for option in convolution["options"]}
    assert {"torch convolution, NHWC", "torch convolution, NCHW"} <= names
    # What is noisy is timed again, and may change what else is timed: until nothing is noisy.
    runs = [first]
    while len(runs) < MOST_RUNS and not (len(runs) > 1 and is_kept(*runs[-2:])):
        runs.append(calibrated(capsys, model))
    assert is_kept(*runs[-2:])


def is_kept(before: Any, after: Any) -> bool:
    """Whether all that was measured quietly is the same to the last digit, and there is some."""
    kept, again = quiet_times(before), quiet_times(after)
    return bool(kept) and all(again.get(key) == kept[key] for key in kept)


def is_noisy(kernel: Any) -> bool:
    return any(option["is_noisy"] for option in kernel["options"])


def test_calibrate_again_measures_what_is_known(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = calibrated(capsys, model), calibrated(capsys, model, "--again")
    before, after = first["kernels"][0], second["kernels"][0]
    seconds = [[option["seconds"] for option in each["options"]] for each in (before, after)]
    assert seconds[0] != seconds[1]


def test_the_table_is_readable_without_the_source(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", model]) == 0
    text = capsys.readouterr().out
    assert "Relu" in text
    assert "oneDNN" in text
    assert not any(code in text for code in ("bias1", "sum0", "inf", "gelu0"))
