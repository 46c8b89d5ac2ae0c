"""The commands that measure say what they measured."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

pytest.importorskip("torch")

from relayout.backends.torch.calibration import common_convolution
from relayout.cli import main


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "small.onnx"
    onnx.save(common_convolution((8, 16, 12, 3, 1, 1)), path)
    return str(path)


def test_bench_tells_the_time_of_each_way(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", model, "--rounds", "2", "--json"]) == 0
    times = json.loads(capsys.readouterr().out)["times"]
    assert [each["way"] for each in times] == ["relayout", "torch, nothing fused", "ONNX Runtime"]
    assert all(0 < each["low"] <= each["median"] <= each["high"] for each in times)


def test_calibrate_shows_what_is_chosen_and_keeps_it(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = []
    for _ in range(2):
        assert main(["calibrate", model, "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out)["choices"])
    assert answers[0] == answers[1]
    for choice in answers[0]:
        seconds = choice["seconds"]
        assert not seconds or choice["chosen"] in seconds
    (convolution, *_) = answers[0]
    assert {"plain", "plain first"} <= convolution["seconds"].keys()
