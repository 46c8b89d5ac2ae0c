"""Constants of files are permuted in blocks, and every block is what numpy makes of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from benchmarks import large_models
from relayout.graph.editing import contiguous as tiles
from relayout.graph.editing.contiguous import contiguous
from relayout.graph.editing.permuted import PermutedTensor, permuted_tensor
from relayout.graph.io import streaming
from relayout.layout.permutation import Permutation

SHAPES = [(7,), (5, 300), (300, 5), (270, 290), (3, 40, 50), (1, 40, 1, 30), (6, 5, 4, 3), (0, 4)]


def stored(path: Path, array: np.ndarray[Any, Any]) -> ir.ExternalTensor:
    """The array in a file, at a place that no page begins at."""
    path.write_bytes(b"\0" * 100 + array.tobytes())
    return ir.ExternalTensor(
        path.name,
        offset=100,
        length=array.nbytes,
        dtype=ir.DataType.from_numpy(array.dtype),
        shape=ir.Shape(array.shape),
        name="w",
        base_dir=path.parent,
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_blocks_hold_what_numpy_transposes(
    tmp_path: Path, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "BLOCK", 4000)
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    tensor = stored(tmp_path / "w.bin", array)
    for axes in permutations(range(len(shape))):
        blocks = list(streaming.blocks_of(permuted_tensor(tensor, Permutation(axes))))
        assert b"".join(map(bytes, blocks)) == array.transpose(axes).tobytes()
        row = max(1, array.nbytes // max(1, shape[axes[0]]))
        assert all(len(block) <= max(4000, row) for block in blocks)


def test_a_permuted_constant_is_permuted_again_in_one_step(tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    first = permuted_tensor(stored(tmp_path / "w.bin", array), Permutation.of(2, 0, 1))
    both = permuted_tensor(first, Permutation.of(1, 0, 2))
    assert isinstance(both, PermutedTensor)
    assert isinstance(both.given, ir.ExternalTensor)
    expected = array.transpose(2, 0, 1).transpose(1, 0, 2)
    assert b"".join(map(bytes, streaming.blocks_of(both))) == expected.tobytes()


def test_entries_of_half_a_byte_are_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "w.bin"
    path.write_bytes(bytes([0x21, 0x43, 0x65]))
    given = ir.ExternalTensor(
        path.name, 0, 3, ir.DataType.UINT4, shape=ir.Shape([2, 3]), name="w", base_dir=tmp_path
    )
    tensor = permuted_tensor(given, Permutation.of(1, 0))
    assert b"".join(map(bytes, streaming.blocks_of(tensor))) == bytes([0x41, 0x52, 0x63])


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [s for s in SHAPES if len(s) > 1], ids=str)
def test_tiles_copy_every_entry_once(
    shape: tuple[int, ...], dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "SMALLEST", 0)
    monkeypatch.setattr(tiles, "TILE", 16)
    array: np.ndarray[Any, Any] = (np.arange(np.prod(shape)) % 100).astype(dtype).reshape(shape)
    for axes in permutations(range(len(shape))):
        moved = contiguous(array.transpose(axes))
        assert moved.flags.c_contiguous
        assert np.array_equal(moved, array.transpose(axes))


LIMITED = """
import resource, signal, sys
from relayout.errors import RelayoutError
from relayout.graph.io import streaming
from relayout.optimizer.optimize import optimize
given, out, how = sys.argv[1:]
streaming.BLOCK = 1 << 20
signal.signal(signal.SIGXFSZ, signal.SIG_IGN if how == "full" else signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (10 << 20, 10 << 20))
try:
    optimize(given, out, verify=False)
except RelayoutError as error:
    sys.exit(str(error))
"""


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
@pytest.mark.parametrize(("how", "status"), [("full", 1), ("killed", -signal.SIGXFSZ)])
def test_a_disk_that_is_full_or_a_kill_leaves_no_data_file_cut_short(
    tmp_path: Path, how: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_models, "SIDE", 1024)
    monkeypatch.setattr(large_models, "WEIGHT", 1024 * 1024 * 4)
    model = large_models.LargeModel(tmp_path, gigabytes=0.017, permuted=1.0)
    model.write()
    given = set(tmp_path.iterdir())
    call = [sys.executable, "-c", LIMITED, str(model.path), str(tmp_path / "out.onnx"), how]
    ended = subprocess.run(call, check=False, capture_output=True, text=True)
    assert ended.returncode == status, ended.stderr
    left = set(tmp_path.iterdir()) - given
    if how == "full":
        assert "cannot write" in ended.stderr
        assert not left
    assert all(path.suffix == ".part" for path in left)
