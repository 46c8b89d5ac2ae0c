"""A model as it was given, and the form in which it is edited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
import onnx_ir as ir

from relayout.errors import RelayoutError
from relayout.graph.io.external import ExternalFiles

SOURCE = "relayout.source"
"""The key under which nodes, attributes and tensors carry the messages they were read from."""


@dataclass(slots=True)
class LoadedModel:
    """A model that was found safe to work on, or to copy.

    Passes edit `ir`. Saving merges what they changed into a copy of `source`, so that whatever
    onnx-ir cannot hold survives.
    """

    given: onnx.ModelProto
    """The message as it came; never edited. External data is not part of it."""
    source: onnx.ModelProto
    """The master message: as given, with nodes in an order that can run and each name once."""
    files: ExternalFiles
    path: Path | None = None
    """The file it was read from, if any."""
    data: bytes | None = None
    """The bytes it was read from, if it was given as such."""
    editable: ir.Model | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)
    """By the names of values in `source` that are new, those they came with."""
    frozen: str | None = None
    """Why the model may only be copied through; None when it may be edited."""
    notices: list[str] = field(default_factory=list)
    """What the user should know."""
    expanded_size: int = 0
    """How many nodes there are if each call of a function is replaced by what it calls."""
    spill: TemporaryDirectory[str] | None = None
    """Keeps the files of a model that was too large for memory alive as long as this object."""

    @property
    def ir(self) -> ir.Model:
        """What passes edit; there is none when the model is frozen."""
        if self.editable is None:
            raise RelayoutError(f"the model cannot be changed: {self.frozen}")
        return self.editable

    def clone(self) -> LoadedModel:
        """The same model to edit apart from this one; data of tensors is shared."""
        editable = None if self.editable is None else self.editable.clone()
        return replace(self, editable=editable, notices=list(self.notices))
