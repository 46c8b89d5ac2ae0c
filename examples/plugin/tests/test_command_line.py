"""The command line knows what the plugin adds."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path

import onnx
import pytest
from relayout_example_plugin import EXAMPLE_NPU, HILL_CLIMB

from relayout.cli import main

BY_PLUGIN = ["--target", "example-npu", "--strategy", "hill-climb"]


@pytest.mark.parametrize(
    ("group", "name"),
    [("ops", "com-example"), ("targets", "example-npu"), ("strategies", "hill-climb")],
)
def test_the_plugin_is_installed(group: str, name: str) -> None:
    assert name in entry_points(group=f"relayout.{group}").names


def test_optimize_by_target_and_strategy(given: Path) -> None:
    output = given.with_name("out.onnx")
    assert main(["optimize", str(given), "-o", str(output), *BY_PLUGIN]) == 0
    assert [node.op_type for node in onnx.load(output).graph.node] == ["MyGelu"]


def test_help_names_target_and_strategy(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["optimize", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    for each in (EXAMPLE_NPU, HILL_CLIMB):
        assert f"{each.name}: {each.summary}" in printed


def test_compare_lists_the_strategy(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(given), "--target", "example-npu", "--no-verify", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["target"] == "example-npu"
    assert "hill-climb" in [strategy["name"] for strategy in record["strategies"]]


def test_an_unknown_target_is_refused_with_all_that_are_known(
    given: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["optimize", str(given), "--target", "example-gpu"])
    printed = capsys.readouterr().err
    assert "unknown target 'example-gpu'; the targets are onnx, " in printed
    assert "example-npu" in printed
