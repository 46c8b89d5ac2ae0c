"""Where a file is to go: a place among files, replaced in one step, or a stream, written to."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, TypeAlias

from relayout.errors import RelayoutError, quoted
from relayout.graph.io.data import NewFiles, synchronise

Output: TypeAlias = str | os.PathLike[str] | BinaryIO
"""A path, or a binary file that is open for writing."""

STREAMS = (stat.S_ISFIFO, stat.S_ISCHR)
"""What is written to as it is: a file in its place would not be what was asked for."""

REFUSED_KINDS = {
    stat.S_IFDIR: "it is a folder",
    stat.S_IFBLK: "it is a block device",
    stat.S_IFSOCK: "it is a socket",
}


@dataclass(frozen=True, slots=True)
class Destination:
    """A place that was found to be one that can be written to."""

    name: str
    """As it was given."""
    path: Path | None
    """Where a file goes or a stream is opened, with every link followed."""
    stream: BinaryIO | None = None
    is_stream: bool = False

    @classmethod
    def of(cls, output: Output) -> Destination:
        """The destination that was asked for; refuses what could not be written to."""
        if not isinstance(output, str | os.PathLike):
            return cls(str(getattr(output, "name", "a stream")), None, output, is_stream=True)
        path = Path(output)
        mode = _mode(path)
        if mode is not None and stat.S_IFMT(mode) in REFUSED_KINDS:
            raise cannot_write(path, REFUSED_KINDS[stat.S_IFMT(mode)])
        if mode is not None and any(is_kind(mode) for is_kind in STREAMS):
            return cls(str(output), path, is_stream=True)
        real = Path(os.path.realpath(path))
        if not real.parent.is_dir():
            raise cannot_write(path, "its folder does not exist")
        if not os.access(real.parent, os.W_OK | os.X_OK):
            raise cannot_write(path, "its folder is read-only")
        if mode is not None and not os.access(real, os.W_OK):
            raise cannot_write(path, "it is read-only")
        return cls(str(output), real)

    def is_same(self, other: Destination) -> bool:
        """Whether what goes to one would overwrite or follow what goes to the other."""
        if self.path is None or other.path is None:
            return self.stream is not None and self.stream is other.stream
        return os.path.realpath(self.path) == os.path.realpath(other.path)

    def send(self, file: Path) -> None:
        """Write a file to this stream."""
        try:
            with self._opened() as stream, file.open("rb") as reader:
                shutil.copyfileobj(reader, stream)
                stream.flush()
        except OSError as error:
            reason = "no one reads from it" if error.errno == errno.ENXIO else reason_of(error)
            raise cannot_write(self.name, reason) from None

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        if self.stream is not None:
            yield self.stream
            return
        # Without this, a pipe that no one reads from would be waited for.
        descriptor = os.open(str(self.path), os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "wb") as stream:
            os.set_blocking(descriptor, True)
            yield stream


def check_apart(given: Iterable[object], written: Mapping[str, Output | None]) -> None:
    """Refuse what would write one file over another, or over a model that is read."""
    read = {os.path.realpath(each) for each in given if isinstance(each, str | os.PathLike)}
    taken: dict[str, str] = {}
    for what, output in written.items():
        place = _file(output)
        if place is None:
            continue
        if place in read:
            raise RelayoutError(f"the {what} would overwrite the given model")
        if place in taken:
            raise RelayoutError(f"the {taken[place]} and the {what} would go to the same place")
        taken[place] = what


def _file(output: Output | None) -> str | None:
    """What a path leads to, unless that is written to as it is."""
    if not isinstance(output, str | os.PathLike) or output == "-":
        return None
    mode = _mode(Path(output))
    is_stream = mode is not None and any(is_kind(mode) for is_kind in STREAMS)
    return None if is_stream else os.path.realpath(output)


def cannot_write(path: object, reason: object) -> RelayoutError:
    return RelayoutError(f"cannot write {quoted(str(path))}: {reason}")


def reason_of(error: OSError) -> str:
    return error.strerror or str(error)


def _mode(path: Path) -> int | None:
    """What a path leads to, if there is anything."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        raise cannot_write(path, reason_of(error)) from None
    except ValueError as error:
        raise cannot_write(path, error) from None


def beside(place: Path) -> Path:
    """A name of its own in the same folder, so that a file can be renamed into its place."""
    return place.with_name(f".{place.stem}.{token_hex(6)}{place.suffix}")


def hand_over(staged: Sequence[tuple[Path, Destination]]) -> None:
    """Let staged files reach their destinations: all of them, or none of those that are files.

    Streams come first, since what went into one cannot be taken back.
    """
    files = []
    for file, destination in staged:
        if destination.is_stream:
            destination.send(file)
            file.unlink()
        elif destination.path is not None:
            files.append((file, destination.path))
    try:
        _rename(files)
    except OSError as error:
        raise cannot_write(files[-1][1], reason_of(error)) from None
    for folder in dict.fromkeys(place.parent for _, place in files):
        _synchronise_folder(folder)


def _rename(staged: Sequence[tuple[Path, Path]]) -> None:
    """Rename files into their places, all or none of them; the last one in a single step."""
    replaced: list[tuple[Path | None, Path]] = []
    try:
        for file, place in staged:
            _keep_mode(file, place)
            if place != staged[-1][1]:
                replaced.append((_set_aside(place), place))
            file.replace(place)
    except BaseException:
        for backup, place in reversed(replaced):
            place.unlink(missing_ok=True)
            if backup is not None:
                backup.replace(place)
        raise
    for backup, _ in replaced:
        if backup is not None:
            backup.unlink()


def _keep_mode(file: Path, place: Path) -> None:
    """Who may read and write a file does not change when it is replaced."""
    if place.exists():
        file.chmod(stat.S_IMODE(place.stat().st_mode))


def _set_aside(place: Path) -> Path | None:
    """Give what is at a place another name; None if there is nothing."""
    if not place.exists():
        return None
    backup = beside(place)
    place.rename(backup)
    return backup


def _synchronise_folder(folder: Path) -> None:
    """Wait until a renaming is on the disk, where the system reports that."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Document:
    """A small file that is written together with a model, or alone."""

    destination: Destination
    content: bytes

    def staged(self, files: NewFiles, scratch: Path) -> tuple[Path, Destination]:
        """The document under a name of its own, beside its place if that is among files."""
        place = self.destination.path
        if place is None or self.destination.is_stream:
            place = scratch / "document"
        path = beside(place)
        try:
            with files.create(path) as file:
                file.write(self.content)
                synchronise(file)
        except OSError as error:
            raise cannot_write(self.destination.name, reason_of(error)) from None
        return path, self.destination


def write_documents(documents: Sequence[Document], scratch: Path) -> None:
    """Write documents, all or none of them."""
    files = NewFiles()
    try:
        hand_over([document.staged(files, scratch) for document in documents])
        files.keep()
    finally:
        files.take_back()
