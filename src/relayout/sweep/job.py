"""One model and what is to be done with it: the call, the key, and the folder of its results."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import file_digest, sha256
from itertools import pairwise
from pathlib import Path
from secrets import token_hex
from typing import Any

from relayout.errors import RelayoutError
from relayout.graph.io.digest import digest_of_file
from relayout.graph.io.external import ExternalFiles
from relayout.graph.io.sources import given
from relayout.graph.io.version import __version__
from relayout.graph.messages.walk import is_external, tensors_of
from relayout.sweep.sources import FoundModel

RECORD = "record.json"
REPORT = "report.html"


@dataclass(frozen=True, slots=True)
class SweptCommand:
    """A command that can be run over many models, and what it writes for one of them."""

    name: str
    has_report: bool = False
    is_timed: bool = False
    """Whether it measures times, so that nothing else may run beside it."""


SWEPT = {
    command.name: command
    for command in (
        SweptCommand("optimize", has_report=True),
        SweptCommand("fuse", has_report=True),
        SweptCommand("compile", is_timed=True),
        SweptCommand("check"),
        SweptCommand("bench", has_report=True, is_timed=True),
    )
}


@dataclass(frozen=True, slots=True)
class SweptCall:
    """What is done with each model."""

    command: SweptCommand
    output: str | None = None
    """The name of the file that it writes, if it writes one."""
    options: tuple[str, ...] = ()
    seconds: float = 3600.0
    """What a model may take."""
    memory: int | None = None
    """Bytes that a process may use for one."""

    @property
    def is_timed(self) -> bool:
        return self.command.is_timed or "--measure" in self.options


@dataclass(frozen=True, slots=True)
class Job:
    """A model, the call, and where the results go."""

    model: FoundModel
    call: SweptCall
    out: Path

    @property
    def folder(self) -> Path:
        return self.out / "models" / self.model.name

    @property
    def options(self) -> tuple[str, ...]:
        return (*self.call.options, *self.model.options)

    @property
    def arguments(self) -> list[str]:
        """The call for this model, as the command line takes it."""
        command = self.call.command
        result = [command.name, str(self.model.path), *self.options, "--json"]
        if self.call.output is not None:
            result += ["-o", str(self.folder / self.call.output)]
        if command.has_report:
            result += ["--report", str(self.folder / REPORT)]
        return result

    @property
    def needs_gpu(self) -> bool:
        return "--device=cuda" in self.options or ("--device", "cuda") in pairwise(self.options)

    def clear(self) -> None:
        """Begin with an empty folder: what a run left that was killed is no result."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def record(self) -> dict[str, Any] | None:
        """What was found out about the model, if that is still true."""
        try:
            known: dict[str, Any] = json.loads((self.folder / RECORD).read_text())
        except (OSError, ValueError):
            return None
        if known.get("asked") != self.asked():
            return None
        files: dict[str, list[int] | None] = known.get("files", {})
        untouched = str(self.model.path) in files and all(
            _state(Path(path)) == state for path, state in files.items()
        )
        return known if untouched or known.get("sha256") == self.content() else None

    def keep(self, record: Mapping[str, Any]) -> None:
        """Write a record, whole or not at all."""
        part = self.folder / f".{RECORD}.{token_hex(6)}"
        part.write_text(json.dumps(record, indent=1) + "\n")
        part.replace(self.folder / RECORD)

    def asked(self) -> dict[str, Any]:
        """What the result depends on besides the model."""
        return {
            "version": __version__,
            "command": self.call.command.name,
            "options": list(self.options),
            "seconds": self.call.seconds,
            "memory": self.call.memory,
        }

    def files(self) -> dict[str, list[int] | None]:
        """Size and time of change of all files of the model: while these stay, so does it."""
        return {str(path): _state(path) for path in files_of(self.model.path).values()}

    def content(self) -> str:
        """A hash of all that the model holds."""
        try:
            digest = digest_of_file(self.model.path).to_json()
        except RelayoutError:
            with self.model.path.open("rb") as file:
                return file_digest(file, "sha256").hexdigest()
        return sha256(json.dumps(digest, sort_keys=True).encode()).hexdigest()

    def finished(self, outcome: Mapping[str, Any]) -> dict[str, Any]:
        """The record of the model once its process has ended."""
        made = {"output": self.call.output, "report": REPORT}
        written = {
            kind: f"models/{self.model.name}/{name}"
            for kind, name in made.items()
            if name is not None and (self.folder / name).exists()
        }
        return {
            "name": self.model.name,
            "source": str(self.model.path),
            "sha256": self.content(),
            "files": self.files(),
            "asked": self.asked(),
            **outcome,
            **written,
        }


def files_of(model: Path) -> dict[str, Path]:
    """The file of a model and those that hold its data, by their names as seen from its folder.

    The first alone if it cannot be read.
    """
    try:
        message = given(model).message
        files = ExternalFiles.beside(model, allow_hard_links=True)
        for tensor, place in tensors_of(message):
            if is_external(tensor):
                files.check(tensor, place)
    except RelayoutError:
        return {model.name: model}
    return {model.name: model, **{name: file.path for name, file in files.found.items()}}


def _state(path: Path) -> list[int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return [state.st_size, state.st_mtime_ns, state.st_ino]
