"""Inputs that hold a tensor of the model unless the caller gives another: defaults.

The file format up to version 3 had every initialiser listed as an input. Its runtimes disagree
whether a caller may replace one, so those count as defaults too.
"""

from __future__ import annotations

import onnx

from relayout.graph.io.load import reloaded
from relayout.graph.io.model import LoadedModel
from relayout.graph.messages.skeleton import FIRST_WITH_DEFAULTS


def without_defaults(loaded: LoadedModel) -> LoadedModel:
    """The model with constants where it had defaults; the given one where it has none.

    This removes them from the inputs, and a notice reports it.
    """
    names = defaults_of(loaded.source)
    if not names:
        return loaded
    message = onnx.ModelProto()
    message.CopyFrom(loaded.source)
    kept = [value for value in loaded.source.graph.input if value.name not in names]
    del message.graph.input[:]
    message.graph.input.extend(kept)
    message.ir_version = max(message.ir_version, FIRST_WITH_DEFAULTS)
    fixed = reloaded(loaded, message)
    fixed.notices.append(_notice(names))
    return fixed


def defaults_of(message: onnx.ModelProto) -> list[str]:
    """The inputs of a model that have a default."""
    graph = message.graph
    given = {tensor.name for tensor in graph.initializer}
    given |= {sparse.values.name for sparse in graph.sparse_initializer}
    return [value.name for value in graph.input if value.name in given]


def _notice(names: list[str]) -> str:
    if len(names) == 1:
        return f"input {names[0]!r} is a constant now, which no caller can replace"
    return f"{len(names)} inputs with defaults are constants now, which no caller can replace"
