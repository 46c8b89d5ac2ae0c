"""Models whose files do not fit into memory are verified by proof alone, or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from relayout.optimizer.optimize import optimize
from relayout.verify.isolated import two_files
from relayout.verify.messages import message_of
from relayout.verify.proof import proof, stored
from relayout.verify.proof.proof import Foreseen, ReadModel, prove
from relayout.verify.proof.stored import DataFolder, shared_places
from relayout.verify.verdict import NumericOptions, NumericVerdict
from relayout.verify.worker import _two_files

SIDE = 24


def weight(name: str, side: int, file: str, offset: int) -> TensorProto:
    """A square of floats in a file."""
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[side, side])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=file)
    tensor.external_data.add(key="offset", value=str(offset))
    return tensor


def large(folder: Path, side: int = SIDE) -> Path:
    """Two products; the weight of the second stands behind a Transpose."""
    folder.mkdir()
    numbers = np.random.default_rng(0).standard_normal((2, side, side)).astype(np.float32)
    (folder / "w.data").write_bytes(numbers.tobytes())
    weights = [weight(f"w{i}", side, "w.data", i * side * side * 4) for i in range(2)]
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a"]),
        helper.make_node("Transpose", ["w1"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["a", "t"], ["y"]),
    ]
    ports = [helper.make_tensor_value_info(name, 1, [1, side]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "large", ports[:1], ports[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "m.onnx")
    return folder / "m.onnx"


def judged(before: Path, after: Path) -> NumericVerdict:
    """The verdict where no more than a byte is allowed for running both."""
    options = NumericOptions()
    return _two_files({**two_files(before, after, options), "memory": 1}, options)


@pytest.fixture(autouse=True)
def _all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "SMALLEST_SHARED", 1)


def optimised(given: Path, out: Path, *, hard_links: bool = False) -> Path:
    out.mkdir(exist_ok=True)
    result = optimize(given, out / "out.onnx", verify=False, hard_links=hard_links)
    assert result.changed
    return out / "out.onnx"


def test_a_proof_is_enough_and_it_is_told(tmp_path: Path) -> None:
    given = large(tmp_path / "given")
    verdict = judged(given, optimised(given, tmp_path / "out"))
    assert verdict.equal
    assert verdict.summary().startswith("proved identical; by proof alone: both models take")


@pytest.mark.parametrize("name", ["w.data", "out.onnx.data"])
def test_a_weight_that_was_changed_is_no_proof(tmp_path: Path, name: str) -> None:
    given = large(tmp_path / "given")
    after = optimised(given, tmp_path / "out")
    content = bytearray((after.parent / name).read_bytes())
    content[7] ^= 0x40  # beyond rounding
    (after.parent / name).write_bytes(content)
    verdict = judged(given, after)
    assert verdict.status == "unknown"
    assert "not proved for 1 of 1 outputs" in verdict.reason


def test_what_both_models_have_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = large(tmp_path / "given")
    after = optimised(given, given.parent)
    read = list[str]()
    array = DataFolder.array

    def noted(self: DataFolder, tensor: TensorProto) -> object:
        read.append(tensor.name)
        return array(self, tensor)

    monkeypatch.setattr(DataFolder, "array", noted)
    assert prove(given, after).identical
    assert "w0" not in read
    assert "w1" in read


def products(path: Path, places: Mapping[str, tuple[str, int]], factors: Sequence[str]) -> Path:
    """A model whose outputs are products of its input with weights that lie in files."""
    weights = [weight(name, SIDE, *place) for name, place in places.items()]
    nodes = [
        helper.make_node("MatMul", ["x", factor], [f"y{number}"])
        for number, factor in enumerate(factors)
    ]
    names = ["x", *(f"y{number}" for number in range(len(factors)))]
    ports = [helper.make_tensor_value_info(name, 1, [1, SIDE]) for name in names]
    graph = helper.make_graph(nodes, "products", ports[:1], ports[1:], weights)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path


def test_weights_that_were_not_read_at_first_are_still_told_apart(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).standard_normal((2, SIDE, SIDE)).astype(np.float32)
    (tmp_path / "w.data").write_bytes(numbers.tobytes())
    (tmp_path / "copy.data").write_bytes(numbers[1].tobytes())
    given = {"a": ("w.data", 0), "b": ("w.data", SIDE * SIDE * 4)}
    moved = {"a": ("w.data", 0), "b": ("copy.data", 0)}
    before = products(tmp_path / "before.onnx", given, ["a", "b"])
    assert prove(before, products(tmp_path / "same.onnx", moved, ["a", "b"])).identical
    assert not prove(before, products(tmp_path / "swapped.onnx", moved, ["b", "a"])).proved


@pytest.mark.parametrize("new", [["w1"], [], ["w0", "w1"]], ids=" ".join)
def test_what_was_foreseen_changes_no_proof(
    tmp_path: Path, new: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = large(tmp_path / "given")
    after = optimised(given, given.parent)
    other = products(given.parent / "other.onnx", {"w0": ("w.data", 0)}, ["w0"])
    expected = [prove(given, second) for second in (after, other)]
    foreseen = [Foreseen.of(given, new) for _ in expected]
    read = list[Path]()

    def noted(path: Path) -> onnx.ModelProto:
        read.append(path)
        return message_of(path)

    monkeypatch.setattr(proof, "message_of", noted)
    pairs = zip((after, other), foreseen, strict=True)
    assert [prove(given, second, foreseen=one) for second, one in pairs] == expected
    # Only w1 is stored anew; where something else was expected, the given model is read again.
    assert (given in read) == (new != ["w1"])


def test_a_weight_beside_those_foreseen_is_told_apart(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).standard_normal((2, SIDE, SIDE)).astype(np.float32)
    (tmp_path / "w.data").write_bytes(numbers.tobytes())
    (tmp_path / "copy.data").write_bytes(numbers[1].tobytes())
    given = {"a": ("w.data", 0), "b": ("w.data", SIDE * SIDE * 4)}
    moved = {"a": ("w.data", 0), "b": ("copy.data", 0)}
    before = products(tmp_path / "before.onnx", given, ["a", "b"])
    same = products(tmp_path / "same.onnx", moved, ["a", "b"])
    swapped = products(tmp_path / "swapped.onnx", moved, ["b", "a"])
    assert prove(before, same, foreseen=Foreseen.of(before, ["b"])).identical
    assert not prove(before, swapped, foreseen=Foreseen.of(before, ["b"])).proved
    # Of another model nothing is taken.
    assert not prove(swapped, same, foreseen=Foreseen.of(before, ["b"])).proved


def with_a_hole(model: Path) -> Path:
    """A model of whose data the first half is a hole."""
    data = model.parent / "w.data"
    content = data.read_bytes()
    with data.open("wb") as file:
        file.seek(len(content) // 2)
        file.write(content[len(content) // 2 :])
    return model


@pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="the system tells no holes")
def test_holes_are_zeros_that_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = with_a_hole(large(tmp_path / "given", side=128))
    after = optimised(given, tmp_path / "out")
    read = list[str]()
    mapped = DataFolder._mapped

    def noted(self: DataFolder, tensor: TensorProto, dtype: np.dtype[Any]) -> object:
        read.append(tensor.name)
        return mapped(self, tensor, dtype)

    monkeypatch.setattr(DataFolder, "_mapped", noted)
    assert prove(given, after).identical
    assert read
    assert "w0" not in read
    with (tmp_path / "out" / "w.data").open("r+b") as copy:
        copy.write(bytes(128 * 128 * 4))
    assert prove(given, after).identical, "zeros are zeros, stored or not"
    with (tmp_path / "out" / "w.data").open("r+b") as copy:
        copy.write(b"\1")
    assert not prove(given, after).proved


def test_what_lies_beyond_the_end_of_a_file_is_no_hole(tmp_path: Path) -> None:
    given = with_a_hole(large(tmp_path / "given", side=128))
    after = optimised(given, tmp_path / "out")
    for model in (given, after):
        os.truncate(model.parent / "w.data", 128 * 4)
    verdict = judged(given, after)
    assert verdict.status == "unknown"
    assert "the proof stopped" in verdict.reason


def test_hard_links_are_the_same_bytes(tmp_path: Path) -> None:
    given = large(tmp_path / "given")
    after = optimised(given, tmp_path / "out", hard_links=True)
    assert (tmp_path / "out" / "w.data").samefile(given.parent / "w.data")
    models = [ReadModel.of(path) for path in (given, after)]
    pairs = [(model.model, model.data) for model in models]
    assert len(shared_places(pairs[0], pairs[1])) == 1
    assert judged(given, after).equal


def test_data_outside_of_the_folder_is_no_proof(tmp_path: Path) -> None:
    given = large(tmp_path / "given")
    after = optimised(given, tmp_path / "out")
    (tmp_path / "elsewhere").write_bytes((after.parent / "w.data").read_bytes())
    (after.parent / "w.data").unlink()
    (after.parent / "w.data").symlink_to(tmp_path / "elsewhere")
    assert judged(given, after).status == "unknown"
