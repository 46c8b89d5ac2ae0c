"""External data stays external, whole, and where it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from relayout.errors import RelayoutError
from relayout.graph.io.load import load
from relayout.graph.io.save import save, staged, to_proto
from tests.graph.makers import external_tensor, take_out_pair, with_weight, write, write_external

WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)


def weight_in(path: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    tensor = load(path).ir.graph.initializers["w"].const_value
    assert tensor is not None
    return tensor.numpy()


def test_it_is_read_from_any_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_external(tmp_path / "model")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "model")
    tensor = load("model.onnx").ir.graph.initializers["w"].const_value
    assert tensor is not None
    monkeypatch.chdir(tmp_path / "other")
    assert np.array_equal(tensor.numpy(), WEIGHT)
    assert isinstance(tensor, ir.ExternalTensor)


def test_untouched_tensors_keep_their_message(tmp_path: Path) -> None:
    path = write_external(tmp_path / "model")
    loaded = load(path)
    take_out_pair(loaded)
    save(loaded, path.parent / "out.onnx", changed=True)
    given = onnx.load(path, load_external_data=False)
    result = onnx.load(path.parent / "out.onnx", load_external_data=False)
    assert result.graph.initializer == given.graph.initializer
    assert sorted(item.name for item in path.parent.iterdir()) == [
        "model.onnx",
        "out.onnx",
        "weights.bin",
    ]


@pytest.mark.parametrize("changed", [False, True])
def test_files_follow_to_another_folder(tmp_path: Path, changed: bool) -> None:
    path = write_external(tmp_path / "model")
    (tmp_path / "out").mkdir()
    loaded = load(path)
    if changed:
        take_out_pair(loaded)
    save(loaded, tmp_path / "out" / "m.onnx", changed=changed)
    assert np.array_equal(weight_in(tmp_path / "out" / "m.onnx"), WEIGHT)
    save(loaded, tmp_path / "out" / "again.onnx", changed=changed)
    assert sorted(item.name for item in (tmp_path / "out").iterdir()) == [
        "again.onnx",
        "m.onnx",
        "weights.bin",
    ]


def test_files_in_subfolders_follow_and_are_taken_back(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "w.bin").write_bytes(WEIGHT.tobytes())
    path = write(with_weight(external_tensor("deep/er/w.bin")), folder / "m.onnx")
    (tmp_path / "out").mkdir()
    with staged(load(path), tmp_path / "out" / "m.onnx", changed=False) as stage:
        assert np.array_equal(weight_in(stage.path), WEIGHT)
    assert list((tmp_path / "out").iterdir()) == []


def test_another_file_is_never_overwritten(tmp_path: Path) -> None:
    path = write_external(tmp_path / "model")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "weights.bin").write_bytes(b"precious")
    with pytest.raises(RelayoutError, match="another file"):
        save(load(path), tmp_path / "out" / "m.onnx", changed=False)
    assert (tmp_path / "out" / "weights.bin").read_bytes() == b"precious"
    assert [item.name for item in (tmp_path / "out").iterdir()] == ["weights.bin"]


def test_a_link_in_the_other_folder_is_not_written_through(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "w.bin").write_bytes(WEIGHT.tobytes())
    path = write(with_weight(external_tensor("deep/w.bin")), folder / "m.onnx")
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "deep").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RelayoutError, match="link that leads out"):
        save(load(path), tmp_path / "out" / "m.onnx", changed=False)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_new_data_gets_a_file_of_its_own(tmp_path: Path) -> None:
    path = write_external(tmp_path / "model")
    before = (path.parent / "weights.bin").read_bytes()
    (path.parent / "model.onnx.data").write_bytes(b"precious")
    loaded = load(path)
    large = np.arange(512, dtype=np.float32)
    for name, array in {"small": np.zeros(3, np.float32), "l1": large[:300], "l2": large}.items():
        loaded.ir.graph.register_initializer(ir.Value(name=name, const_value=ir.tensor(array)))
    save(loaded, path, changed=True)
    result = onnx.load(path, load_external_data=False)
    small, first, second = list(result.graph.initializer)[1:]
    assert small.raw_data == bytes(12)
    entries = {entry.key: entry.value for entry in second.external_data}
    assert entries == {"location": "model.onnx.1.data", "offset": "1216", "length": "2048"}
    assert first.external_data[1].value == "0"
    assert np.array_equal(onnx.numpy_helper.to_array(onnx.load(path).graph.initializer[3]), large)
    assert (path.parent / "weights.bin").read_bytes() == before
    assert (path.parent / "model.onnx.data").read_bytes() == b"precious"


def test_new_data_is_taken_back_with_the_model(tmp_path: Path) -> None:
    path = write_external(tmp_path / "model")
    loaded = load(path)
    array = np.arange(512, dtype=np.float32)
    loaded.ir.graph.register_initializer(ir.Value(name="l", const_value=ir.tensor(array)))
    before = sorted(path.parent.iterdir())
    with staged(loaded, path, changed=True) as stage:
        assert len(onnx.load(stage.path).graph.initializer) == 2
    assert sorted(path.parent.iterdir()) == before


def test_a_cache_of_links_works(tmp_path: Path) -> None:
    """Model caches keep files under other names, and a folder of links to them."""
    real = write_external(tmp_path / "blobs")
    real.rename(tmp_path / "blobs" / "123")
    (tmp_path / "blobs" / "weights.bin").rename(tmp_path / "blobs" / "456")
    links = tmp_path / "snapshots" / "main"
    links.mkdir(parents=True)
    (links / "model.onnx").symlink_to("../../blobs/123")
    (links / "weights.bin").symlink_to("../../blobs/456")
    assert np.array_equal(weight_in(links / "model.onnx"), WEIGHT)
    (tmp_path / "out").mkdir()
    save(load(links / "model.onnx"), tmp_path / "out" / "m.onnx", changed=False)
    assert np.array_equal(weight_in(tmp_path / "out" / "m.onnx"), WEIGHT)


def test_two_gigabytes_are_neither_read_nor_copied(tmp_path: Path) -> None:
    path = write_external(tmp_path / "model", large=5 * 2**29)
    loaded = load(path)
    big = loaded.ir.graph.initializers["big"].const_value
    assert big is not None
    assert big.nbytes == 5 * 2**29
    take_out_pair(loaded)
    save(loaded, path.parent / "out.onnx", changed=True)
    assert (path.parent / "out.onnx").stat().st_size < 1000
    assert (path.parent / "weights.bin").stat().st_blocks * 512 < 2**20
    assert len(to_proto(loaded).graph.initializer) == 2
