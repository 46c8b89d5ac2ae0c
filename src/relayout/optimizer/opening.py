"""Reads models the way the user asked: in a newer opset, with constants in place of defaults."""

from __future__ import annotations

from dataclasses import dataclass

from relayout.errors import RelayoutError
from relayout.graph.io.defaults import without_defaults
from relayout.graph.io.load import load
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.opset import raise_opset
from relayout.graph.io.sources import ModelSource


@dataclass(slots=True)
class Opener:
    """Reads a model anew for every way that is tried."""

    source: ModelSource
    opset: int | None = None
    fix_defaults: bool = False
    first: LoadedModel | None = None
    """The model as it was read already."""

    def __call__(self) -> LoadedModel:
        loaded, self.first = self.first or load(self.source), None
        return self.fixed(loaded if self.opset is None else _raised(loaded, self.opset))

    def fixed(self, loaded: LoadedModel) -> LoadedModel:
        """The model with constants in place of defaults, if asked for and if it may be changed."""
        return without_defaults(loaded) if self.fix_defaults and loaded.frozen is None else loaded


def opened(
    source: ModelSource, *, opset: int | None = None, fix_defaults: bool = False
) -> LoadedModel:
    """A model that passes can look into."""
    loaded = Opener(source, opset, fix_defaults)()
    if loaded.frozen is not None:
        raise RelayoutError(f"the model cannot be looked into: {loaded.frozen}")
    return loaded


def _raised(loaded: LoadedModel, opset: int) -> LoadedModel:
    """The model in a newer opset, to be compared with the file it came from."""
    message = raise_opset(loaded.source, opset)
    if message is loaded.source:
        return loaded
    raised = load(message)
    raised.path = loaded.path
    return raised
