"""Data files brought beside a result: cloned, linked or copied, as the file system allows.

A file has its name only once it is whole, so that a run that is killed leaves none cut short.
"""

from __future__ import annotations

import errno
import filecmp
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from relayout.errors import RelayoutError, quoted
from relayout.graph.io.data import NewFiles, synchronise

CLONED = "cloned"
LINKED = "hard link"
COPIED = "copied"
FOUND = "already there"

_FICLONE = 0x40049409
"""From <linux/fs.h>: let a file share the blocks of another until one of them is written to."""

_CHUNK = 16 * 1024 * 1024


def bring_file(given: Path, location: str, folder: Path, files: NewFiles, *, link: bool) -> str:
    """Let a data file be found below another folder; in which way is returned.

    A file that is there already and holds the same stays as it is; any other is an error. Hard
    links are made only if they are asked for: onnx reads no data through them.
    """
    copy = folder / location
    if not copy.parent.resolve().is_relative_to(folder.resolve()):
        raise RelayoutError(
            f"{quoted(str(copy))} is reached through a link that leads out of its folder"
        )
    if copy.exists():
        if not given.samefile(copy) and not filecmp.cmp(given, copy, shallow=False):
            raise RelayoutError(f"{quoted(str(copy))} exists and is another file; move it away")
        return FOUND
    files.make_folders(copy.parent)
    if link and _linked(given, copy, files):
        return LINKED
    part = files.part_of(copy)
    with given.open("rb") as reader, files.create(part) as writer:
        way = CLONED if _cloned(reader, writer) else COPIED
        if way == COPIED:
            _copy(reader, writer)
        synchronise(writer)
    files.rename(part, copy)
    return way


def ways_text(ways: Counter[str]) -> str:
    """How data files were brought, in a line."""
    told = ", ".join(f"{count} {way}" for way, count in ways.items())
    return f"data files brought beside the result: {told}"


def _linked(given: Path, copy: Path, files: NewFiles) -> bool:
    try:
        copy.hardlink_to(given)
    except OSError as error:
        if error.errno in {errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK}:
            return False
        raise
    files.made.append(copy)
    return True


def _cloned(reader: BinaryIO, writer: BinaryIO) -> bool:
    try:
        import fcntl  # noqa: PLC0415 - no such module on Windows
    except ImportError:
        return False
    try:
        fcntl.ioctl(writer.fileno(), _FICLONE, reader.fileno())
    except OSError:
        return False  # Copying reports what else is wrong with these files.
    return True


def _copy(reader: BinaryIO, writer: BinaryIO) -> None:
    """Copy what is stored; holes stay holes."""
    size = os.fstat(reader.fileno()).st_size
    for begin, stop in _stored_ranges(reader, size):
        start = _copied_by_system(reader, writer, begin, stop)
        reader.seek(start)
        writer.seek(start)
        left = stop - start
        while left:
            chunk = reader.read(min(left, _CHUNK))
            if not chunk:
                raise OSError(errno.EIO, "a data file became shorter while it was copied")
            writer.write(chunk)
            left -= len(chunk)
    writer.truncate(size)


def _copied_by_system(reader: BinaryIO, writer: BinaryIO, start: int, stop: int) -> int:
    """Let the system copy a range, which it does without a copy in this process; where it ended."""
    if not hasattr(os, "copy_file_range"):
        return start
    with suppress(OSError):  # Copying the rest reports what is wrong with these files.
        files = reader.fileno(), writer.fileno()
        while count := os.copy_file_range(*files, min(stop - start, _CHUNK), start, start):
            start += count
    return start


def _stored_ranges(reader: BinaryIO, size: int) -> Iterator[tuple[int, int]]:
    """The parts of a file that are no holes, as far as the system knows."""
    if not hasattr(os, "SEEK_DATA"):
        yield 0, size
        return
    stop = 0
    while stop < size:
        try:
            start = os.lseek(reader.fileno(), stop, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole is left
                return
            raise
        stop = os.lseek(reader.fileno(), start, os.SEEK_HOLE)
        yield start, stop
