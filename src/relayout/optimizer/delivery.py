"""Writes a model only after its numbers were compared with those of the given one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import onnx

from relayout.errors import RelayoutError
from relayout.graph.io.destination import Destination, Document, write_documents
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.save import Staged, staged
from relayout.graph.shapes.infer import MOST_EXPANDED_NODES
from relayout.verify.isolated import compare_isolated
from relayout.verify.verdict import NumericOptions, NumericVerdict, unknown

Stage: TypeAlias = Callable[[str], None]
"""Called with the name of each stage as it begins."""

Comparing: TypeAlias = Callable[[Path, Path, NumericOptions], NumericVerdict]
"""The verdict on a file, against the one it was made of."""


Beside: TypeAlias = "Callable[[Delivery], Sequence[Document]]"
"""From a model that is about to be put in its place to the documents that go with it."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a model that was to be written."""

    verdict: NumericVerdict | None = None
    """None where there was nothing to compare, or no comparison was asked for."""
    output: Path | None = None
    """Where the model was written, or is about to be, as that was given."""
    staged: Path | None = None
    """Where the model is while it waits to be put in its place."""

    @property
    def refused(self) -> bool:
        return self.verdict is not None and not self.verdict.equal


def check_names(loaded: LoadedModel, inputs: NumericOptions) -> None:
    """Refuse shapes and lengths for what the model does not have: they are typing errors."""
    declared = loaded.source.graph.input
    names = [value.name for value in declared]
    dims = {d.dim_param for value in declared for d in value.type.tensor_type.shape.dim}
    for name, shape in inputs.shapes.items():
        if name not in names:
            raise RelayoutError(f"the model has no input {name!r}; it has {', '.join(names)}")
        _check_shape(declared[names.index(name)], shape)
    for name in inputs.dims:
        known = ", ".join(sorted(dims - {""})) or "none"
        if name not in dims and "[" not in name:
            raise RelayoutError(f"no input has a dimension {name!r}; the named ones are: {known}")


def _check_shape(value: onnx.ValueInfoProto, shape: Sequence[int]) -> None:
    """Refuse a shape that contradicts what an input declares."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return
    lengths = [
        dim.dim_param or (dim.dim_value if dim.HasField("dim_value") else "?")
        for dim in tensor.shape.dim
    ]
    fits = len(lengths) == len(shape) and all(
        isinstance(length, str) or length < 0 or length == given
        for length, given in zip(lengths, shape, strict=True)
    )
    if not fits:
        told = ",".join(map(str, lengths))
        given = ",".join(map(str, shape))
        raise RelayoutError(f"input {value.name!r} is [{told}], which {given} does not fit")


def deliver(
    given: LoadedModel,
    made: LoadedModel,
    output: Destination | None,
    inputs: NumericOptions | None,
    stage: Stage,
    *,
    changed: bool,
    beside: Beside = lambda _: (),
    comparing: Comparing = compare_isolated,
) -> Delivery:
    """Write a model beside its place, compare, and put it in its place if it is right.

    Without inputs nothing is compared; a model that was not changed is copied. `beside` is called
    when the model was found right, before anything takes its place; the documents it returns are
    put in theirs together with the model. If it raises, nothing is written.
    """
    compares = changed and inputs is not None
    with TemporaryDirectory(prefix="relayout-") as scratch, ExitStack() as stack:
        folder, verdict, file = Path(scratch), None, None
        if output is not None or compares:
            stage("writing")
            place = output or folder / "after.onnx"
            file = stack.enter_context(staged(made, place, changed=changed))
        if file is not None and compares and inputs is not None:
            stage("comparing numbers")
            verdict = compared(given, file, inputs, folder, comparing)
        delivery = Delivery(verdict)
        if delivery.refused:
            return delivery
        if file is not None and output is not None:
            delivery = Delivery(verdict, Path(output.name), file.path)
            file.commit(beside(delivery))
        else:
            write_documents(beside(delivery), folder)
        return replace(delivery, staged=None)


def compared(
    given: LoadedModel,
    file: Staged,
    inputs: NumericOptions,
    folder: Path,
    comparing: Comparing = compare_isolated,
) -> NumericVerdict:
    """The verdict on a staged model, against the file or the message that was given."""
    if given.expanded_size > MOST_EXPANDED_NODES:
        return unknown(
            f"its functions expand to {given.expanded_size} nodes, and runtimes expand functions:"
            f" more than {MOST_EXPANDED_NODES} are not run"
        )
    if given.path is not None:
        return comparing(given.path, file.path, inputs)
    place = folder / "before.onnx"
    with staged(given, place, changed=False) as original:
        original.commit()
    return comparing(place, file.path, inputs)
