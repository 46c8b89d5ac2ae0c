"""Data files reach another folder whole or not at all, and it is told how."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relayout.errors import RelayoutError
from relayout.graph.io.copies import COPIED, FOUND, LINKED, bring_file
from relayout.graph.io.data import NewFiles
from relayout.graph.io.load import load
from relayout.graph.io.save import save
from tests.graph.makers import take_out_pair, write_external

MEGABYTE = 1 << 20


def test_holes_stay_holes(tmp_path: Path) -> None:
    given = tmp_path / "sparse.bin"
    with given.open("wb") as file:
        file.truncate(64 * MEGABYTE)
        file.seek(32 * MEGABYTE)
        file.write(b"something")
    (tmp_path / "out").mkdir()
    bring_file(given, "sparse.bin", tmp_path / "out", NewFiles(), link=False)
    copy = tmp_path / "out" / "sparse.bin"
    assert copy.read_bytes() == given.read_bytes()
    assert copy.stat().st_blocks * 512 <= 2 * MEGABYTE


@pytest.mark.skipif(os.name != "posix", reason="reads and writes of POSIX")
def test_what_the_system_does_not_copy_is_read_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tmp_path / "w.bin"
    given.write_bytes(np.random.default_rng(0).bytes(40 * MEGABYTE))
    copied = list[int]()

    def first_part_only(source: int, target: int, count: int, at: int, to: int) -> int:
        if copied:
            raise OSError(errno.EXDEV, "another device")
        copied.append(os.pwrite(target, os.pread(source, count, at), to))
        return copied[0]

    monkeypatch.setattr(os, "copy_file_range", first_part_only, raising=False)
    (tmp_path / "out").mkdir()
    bring_file(given, "w.bin", tmp_path / "out", NewFiles(), link=False)
    assert (tmp_path / "out" / "w.bin").read_bytes() == given.read_bytes()


def test_a_file_that_ends_in_data_and_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name, content in (("full", b"x" * 5000), ("empty", b"")):
        (tmp_path / name).write_bytes(content)
        bring_file(tmp_path / name, name, tmp_path / "out", NewFiles(), link=False)
        assert (tmp_path / "out" / name).read_bytes() == content


def test_links_are_made_only_if_asked_for(tmp_path: Path) -> None:
    given = tmp_path / "w.bin"
    given.write_bytes(b"weights")
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    assert bring_file(given, "w.bin", tmp_path / "a", NewFiles(), link=False) != LINKED
    assert given.stat().st_nlink == 1
    assert bring_file(given, "w.bin", tmp_path / "b", NewFiles(), link=True) == LINKED
    assert given.samefile(tmp_path / "b" / "w.bin")
    assert bring_file(given, "w.bin", tmp_path / "b", NewFiles(), link=True) == FOUND


def test_another_file_of_that_name_is_kept(tmp_path: Path) -> None:
    given = tmp_path / "w.bin"
    given.write_bytes(b"weights")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "w.bin").write_bytes(b"others")
    with pytest.raises(RelayoutError, match="another file"):
        bring_file(given, "w.bin", tmp_path / "out", NewFiles(), link=True)
    assert (tmp_path / "out" / "w.bin").read_bytes() == b"others"


def test_the_way_is_reported(tmp_path: Path) -> None:
    loaded = load(write_external(tmp_path / "model"))
    take_out_pair(loaded)
    (tmp_path / "out").mkdir()
    save(loaded, tmp_path / "out" / "m.onnx", changed=True)
    told = [notice for notice in loaded.notices if "brought beside" in notice]
    assert len(told) == 1
    assert told[0].endswith(("1 cloned", f"1 {COPIED}"))


LIMITED = """
import resource, signal, sys
from pathlib import Path
from relayout.graph.io.copies import bring_file
from relayout.graph.io.data import NewFiles
given, out, how = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN if how == "full" else signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))
files = NewFiles()
try:
    bring_file(given, "w.bin", out, files, link=False)
except OSError:
    files.take_back()
    sys.exit(7)
"""


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
@pytest.mark.parametrize(("how", "status"), [("full", 7), ("killed", -signal.SIGXFSZ)])
def test_a_disk_that_is_full_or_a_kill_leaves_no_file_cut_short(
    tmp_path: Path, how: str, status: int
) -> None:
    given = tmp_path / "w.bin"
    given.write_bytes(np.random.default_rng(0).bytes(40 * MEGABYTE))
    out = tmp_path / "out"
    out.mkdir()
    call = [sys.executable, "-c", LIMITED, str(given), str(out), how]
    ended = subprocess.run(call, check=False, env={**os.environ, "PYTHONPATH": _source()})
    assert ended.returncode == status
    assert not (out / "w.bin").exists()
    if how == "full":
        assert list(out.iterdir()) == []
    assert bring_file(given, "w.bin", out, NewFiles(), link=False) != FOUND
    assert (out / "w.bin").read_bytes() == given.read_bytes()


def _source() -> str:
    import relayout  # noqa: PLC0415 - only its place

    return str(Path(relayout.__file__).parents[1])
