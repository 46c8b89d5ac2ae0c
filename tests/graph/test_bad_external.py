"""External data that may not be read, or is not all there."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from relayout.graph.io.load import load
from tests.graph.makers import (
    call,
    external_tensor,
    function,
    model,
    node,
    value,
    with_weight,
    write,
)
from tests.graph.refusal import refusal

pytestmark = pytest.mark.usefixtures("no_hang")


LOCATIONS = ["../w.bin", "a/../../w.bin", "/etc/passwd", "C:\\w.bin", "..\\w.bin", "", ".", "a\0b"]


@pytest.mark.parametrize("location", LOCATIONS)
def test_locations_outside_the_folder(tmp_path: Path, location: str) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(24))
    folder = tmp_path / "model"
    (folder / "a").mkdir(parents=True)
    line = refusal(write(with_weight(external_tensor(location)), folder / "m.onnx"))
    assert "leads out of the model's folder" in line
    assert "'w'" in line


@pytest.mark.parametrize("location", ["link.bin", "linked/w.bin"])
def test_links_that_lead_out(tmp_path: Path, location: str) -> None:
    folder, outside = tmp_path / "model", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "w.bin").write_bytes(bytes(24))
    (folder / "link.bin").symlink_to(outside / "w.bin")
    (folder / "linked").symlink_to(outside)
    line = refusal(write(with_weight(external_tensor(location)), folder / "m.onnx"))
    assert "a link that leads out" in line


def test_a_hard_link(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(np.arange(6, dtype=np.float32).tobytes())
    (tmp_path / "w.bin").hardlink_to(tmp_path / "secret")
    path = write(with_weight(external_tensor("w.bin")), tmp_path / "m.onnx")
    assert "hard links" in refusal(path)
    weight = load(path, allow_hard_links=True).ir.graph.initializers["w"].const_value
    assert weight is not None
    assert weight.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_pipes_devices_folders_and_missing_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for location, reason in [
        ("pipe", "not a plain file"),
        ("folder", "not a plain file"),
        ("missing", "cannot be read"),
        ("x" * 300, "cannot be read"),
    ]:
        path = write(with_weight(external_tensor(location)), tmp_path / "m.onnx")
        assert reason in refusal(path)


def test_a_loop_of_links(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert "cannot be read" in refusal(
        write(with_weight(external_tensor("a")), tmp_path / "m.onnx")
    )


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({"length": 2**62}, "gives the length"),
        ({"length": 28}, "gives the length"),
        ({"length": 20}, "gives the length 20"),
        ({"length": -1}, "is not a size"),
        ({"length": "lots"}, "is not a size"),
        ({"length": "9" * 5000}, "is not a size"),
        ({"offset": 4}, "which has 24"),
        ({"offset": -4}, "is not a size"),
        ({"offset": 2**63}, "which has 24"),
    ],
)
def test_sizes_that_do_not_fit(tmp_path: Path, entries: dict[str, object], reason: str) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(24))
    weight = external_tensor("w.bin")
    for key, number in entries.items():
        weight.external_data.add(key=key, value=str(number))
    assert reason in refusal(write(with_weight(weight), tmp_path / "m.onnx"))


def test_external_strings_repeats_and_a_missing_location(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(24))
    strings = external_tensor("w.bin")
    strings.data_type = TensorProto.STRING
    assert "strings" in refusal(write(with_weight(strings), tmp_path / "m.onnx"))
    twice = external_tensor("w.bin")
    twice.external_data.add(key="location", value="other.bin")
    assert "twice" in refusal(write(with_weight(twice), tmp_path / "m.onnx"))
    nameless = external_tensor("w.bin")
    del nameless.external_data[:]
    assert "names no file" in refusal(write(with_weight(nameless), tmp_path / "m.onnx"))


def test_external_data_of_constants_bodies_and_functions(tmp_path: Path) -> None:
    bad = external_tensor("../w.bin")
    constant = helper.make_node("Constant", [], ["k"], value=bad)
    body = helper.make_graph([node("Relu", "x", "b")], "body", [], [value("b")], [bad])
    branch = node("If", "c", "y", then_branch=body, else_branch=body)
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    calls = [call("f", "x", "y")]
    local = function("f", [constant, node("Relu", "x", "y")])
    for bad_model in (
        model([constant, node("Relu", "x", "y")]),
        model([branch], inputs=[value("x", [2]), condition]),
        model(calls, functions=[local], opsets=[("", 18), ("local", 1)]),
    ):
        assert "leads out" in refusal(write(bad_model, tmp_path / "m.onnx"))


def test_external_data_without_a_folder() -> None:
    assert "give the path" in refusal(with_weight(external_tensor("w.bin")))
