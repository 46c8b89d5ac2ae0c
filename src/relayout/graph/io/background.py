"""A file that grows by blocks: while one is made, the one before is written.

Those before it are on their way to the disk meanwhile.
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import BinaryIO, TypeAlias

Chunk: TypeAlias = bytes | memoryview

SMALLEST = 1 << 20
"""Blocks of fewer bytes are written at once."""


def _one_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1)


@dataclass(slots=True)
class BlockWriter:
    """Appends blocks to a new file; no more than two of them are in memory."""

    file: BinaryIO
    position: int = 0
    _zeros: int = 0
    """Bytes that come before the next block."""
    _last: Future[None] | None = None
    _synchronised: list[Future[None]] = field(default_factory=list)
    _writing: ThreadPoolExecutor = field(default_factory=_one_thread)
    _disk: ThreadPoolExecutor = field(default_factory=_one_thread)

    def align(self, alignment: int) -> None:
        """Let the next block begin at a multiple of some bytes."""
        self._zeros += -self.position % alignment
        self.position += -self.position % alignment

    def write(self, block: Chunk) -> None:
        """Append a block once those before it are written."""
        self._wait()
        self.position += len(block)
        zeros, self._zeros = bytes(self._zeros), 0
        if len(block) < SMALLEST:
            self._append(zeros, block)
        else:
            self._last = self._writing.submit(self._write, zeros, block)

    def end(self) -> Future[None]:
        """Wait until all is written; what is returned is done once all is on the disk too."""
        try:
            self._wait()
            self.file.flush()
        finally:
            on_disk = self._disk.submit(self._close)
            self._writing.shutdown(wait=False)
            self._disk.shutdown(wait=False)
        return on_disk

    def _wait(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            last.result()

    def _append(self, zeros: bytes, block: Chunk) -> None:
        self.file.write(zeros)
        self.file.write(block)

    def _write(self, zeros: bytes, block: Chunk) -> None:
        self._append(zeros, block)
        self._synchronised.append(self._disk.submit(os.fsync, self.file.fileno()))

    def _close(self) -> None:
        with self.file:
            for one in self._synchronised:
                one.result()
            os.fsync(self.file.fileno())
