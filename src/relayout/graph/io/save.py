"""Writes a model whole or not at all, losing nothing that was not edited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
from onnx import TensorProto

from relayout.errors import RelayoutError
from relayout.graph.io.copies import FOUND, bring_file, ways_text
from relayout.graph.io.data import (
    DataFile,
    NewFiles,
    free_location,
    relocate,
    synchronise,
)
from relayout.graph.io.destination import (
    Destination,
    Document,
    Output,
    beside,
    cannot_write,
    hand_over,
    reason_of,
)
from relayout.graph.io.encoding import encoded_parts
from relayout.graph.io.external import location_of
from relayout.graph.io.merge import Inline, Merged, merged, merged_apart
from relayout.graph.io.model import SOURCE, LoadedModel
from relayout.graph.io.sources import BINARY, LARGEST_IN_MEMORY, format_of
from relayout.graph.io.tensors import bytes_needed
from relayout.graph.messages.walk import is_external, tensors_of

BLOCK = 1 << 20
"""So many bytes of a file are read at a time."""


def to_proto(loaded: LoadedModel) -> onnx.ModelProto:
    """The edited model as one message; untouched external data stays external."""
    return merged(loaded, Inline())


@dataclass(slots=True)
class Staged:
    """A model that is written in full, under a name of its own, until it is committed."""

    path: Path
    """Where it can be read and verified, beside its target."""
    target: Path
    """The place that its data files lie beside."""
    destination: Destination
    files: NewFiles = field(default_factory=NewFiles)
    committed: bool = False

    def commit(self, documents: Sequence[Document] = ()) -> None:
        """Put the model in its place, in one step, and documents in theirs just before."""
        try:
            self.files.reach_disk()
        except OSError as error:
            raise cannot_write(self.destination.name, reason_of(error)) from None
        scratch = self.target.parent
        staged = [document.staged(self.files, scratch) for document in documents]
        hand_over([*staged, (self.path, self.destination)])
        self.files.keep()
        self.committed = True


def save(loaded: LoadedModel, target: Path, *, changed: bool) -> None:
    with staged(loaded, target, changed=changed) as stage:
        stage.commit()


@contextmanager
def staged(loaded: LoadedModel, output: Output | Destination, *, changed: bool) -> Iterator[Staged]:
    """Write a model beside its target; what is not committed when the block ends is removed.

    A model that was not changed is copied byte for byte. Data files are never overwritten, so the
    input and the output may be one file. A model for a stream is staged in a folder of its own.
    """
    destination = output if isinstance(output, Destination) else Destination.of(output)
    with TemporaryDirectory(prefix="relayout-") as scratch:
        place = destination.path
        if place is None or destination.is_stream:
            place = Path(scratch) / "model.onnx"
        stage = Staged(beside(place), place, destination)
        try:
            try:
                _write(loaded, stage, changed=changed and loaded.frozen is None)
            except OSError as error:
                raise cannot_write(destination.name, reason_of(error)) from None
            yield stage
        finally:
            if not stage.committed:
                stage.files.take_back()


def _write(loaded: LoadedModel, stage: Staged, *, changed: bool) -> None:
    if stage.destination.is_stream:
        made = Merged(_in_one_message(loaded, changed=changed))
    else:
        made = _merged_with_data(loaded, stage) if changed else Merged(loaded.given)
        if loaded.files.found and not _same_folder(loaded, stage.target.parent):
            made = Merged(_bring_files(loaded, made.message(), stage))
    with stage.files.create(stage.path) as file:
        file.writelines(_content(loaded, made, stage.target, changed=changed))
        synchronise(file)


def _in_one_message(loaded: LoadedModel, *, changed: bool) -> onnx.ModelProto:
    """A model with all its data inside, since nothing can lie beside a stream."""
    size = _given_bytes(loaded.given) + _new_bytes(loaded) + _outside_bytes(loaded.given)
    if size > LARGEST_IN_MEMORY:
        raise RelayoutError(
            f"a model with {size} bytes of data cannot be written to a stream;"
            " give the path of a file, so that data can lie beside it"
        )
    message = to_proto(loaded) if changed else loaded.given
    if not any(is_external(tensor) for tensor, _ in tensors_of(message)):
        return message
    result = onnx.ModelProto()
    result.CopyFrom(message)
    for tensor in [tensor for tensor, _ in tensors_of(result) if is_external(tensor)]:
        data = loaded.files.tensor(tensor).tobytes()
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
        tensor.raw_data = data
    return result


def _bring_files(loaded: LoadedModel, message: onnx.ModelProto, stage: Staged) -> onnx.ModelProto:
    """Bring the data files that a model refers to into the folder of its target.

    They keep their names, but for those that were made up when the model was loaded.
    """
    folder = stage.target.parent
    given = [name for name in _locations(message) if name in loaded.files.found]
    names = {name: name for name in given}
    if loaded.spill is not None:
        names = {name: free_location(stage.target, loaded.files) for name in given}
        message = relocate(message, names)
    ways = Counter(
        bring_file(
            loaded.files.found[name].path,
            *(copy, folder, stage.files),
            link=loaded.files.allow_hard_links,
        )
        for name, copy in names.items()
    )
    if set(ways) - {FOUND}:
        loaded.notices.append(ways_text(ways))
    return message


def _content(loaded: LoadedModel, made: Merged, target: Path, *, changed: bool) -> Iterable[bytes]:
    form = format_of(target)
    if changed or made.rest is not loaded.given:
        return encoded_parts(made.rest, form, made.constants)
    if loaded.data is not None and form == BINARY:
        return [loaded.data]
    if loaded.path is not None and format_of(loaded.path) == form:
        return _blocks(loaded.path)
    return encoded_parts(loaded.given, form)


def _blocks(path: Path) -> Iterator[bytes]:
    """What a file holds, of which little is in memory at a time."""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield block


def _merged_with_data(loaded: LoadedModel, stage: Staged) -> Merged:
    """The edited message; large new data goes to a file if the model keeps data in files.

    It does too when a message could not hold the data any other way.
    """
    total = _given_bytes(loaded.source) + _new_bytes(loaded)
    if not loaded.files.found and total < LARGEST_IN_MEMORY:
        return merged_apart(loaded, Inline())
    location = free_location(stage.target, loaded.files)
    writer = DataFile(stage.target.parent, location, stage.files)
    try:
        message = merged_apart(loaded, writer)
    finally:
        writer.end()
    writer.name()
    return message


def _given_bytes(message: onnx.ModelProto) -> int:
    """The bytes of the tensors in a message, beside which the rest of it is small."""
    return sum(
        tensor.ByteSize() if tensor.data_type == TensorProto.STRING else bytes_needed(tensor, place)
        for tensor, place in tensors_of(message)
        if not is_external(tensor)
    )


def _outside_bytes(message: onnx.ModelProto) -> int:
    """The bytes of the tensors that a message keeps in files."""
    tensors = tensors_of(message)
    return sum(bytes_needed(tensor, place) for tensor, place in tensors if is_external(tensor))


def _new_bytes(loaded: LoadedModel) -> int:
    """The bytes of initialisers that are not of the given model."""
    if loaded.editable is None:
        return 0
    return sum(
        value.const_value.nbytes
        for graph in loaded.ir.graphs()
        for value in graph.initializers.values()
        if value.const_value is not None and SOURCE not in value.const_value.meta
    )


def _locations(message: onnx.ModelProto) -> list[str]:
    names = [location_of(tensor) for tensor, _ in tensors_of(message) if is_external(tensor)]
    return list(dict.fromkeys(names))


def _same_folder(loaded: LoadedModel, folder: Path) -> bool:
    given = loaded.files.folder
    return given is not None and loaded.spill is None and given.samefile(folder)
