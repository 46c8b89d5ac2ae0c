"""Models in the form that can be lowered: a known opset, functions in the place of their calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import onnx
import onnx_ir as ir
from onnx.external_data_helper import load_external_data_for_model
from onnx.inliner import inline_local_functions, inline_selected_functions

from relayout.errors import RelayoutError
from relayout.graph.io.limits import OLDEST_OPSET
from relayout.graph.io.load import load
from relayout.graph.io.model import LoadedModel
from relayout.graph.messages.schemas import check_nodes
from relayout.graph.read import version_of
from relayout.ops.versions.raising import raised

Missing: TypeAlias = Callable[[ir.Model], list[tuple[str, str]]]
"""The operators of a model, by domain and name, that a backend has no lowering for."""

MOST_NODES = 20_000
"""A model whose functions expand to more nodes is not compiled."""


def editable(loaded: LoadedModel) -> LoadedModel:
    """The model in an opset that can be worked on."""
    version = version_of({entry.domain: entry.version for entry in loaded.source.opset_import}, "")
    if loaded.frozen is None:
        return loaded
    if not 0 < version < OLDEST_OPSET:
        raise RelayoutError(f"the model cannot be compiled: {loaded.frozen}")
    newer = load(raised(loaded, OLDEST_OPSET))
    newer.path = loaded.path
    return newer


def expanded(loaded: LoadedModel, missing: Missing) -> LoadedModel:
    """The model with functions in the place of their calls.

    Those are the functions of the model, and operators without a lowering that onnx defines as
    functions of others.
    """
    check_nodes(loaded.source, strictly=True)
    lacking = [] if loaded.source.functions else missing(loaded.ir)
    if not loaded.source.functions and not lacking:
        return loaded
    if loaded.expanded_size > MOST_NODES:
        raise RelayoutError(
            f"its functions expand to {loaded.expanded_size} nodes,"
            f" more than the {MOST_NODES} that are compiled"
        )
    message = onnx.ModelProto()
    message.CopyFrom(loaded.source)
    if loaded.path is not None:
        load_external_data_for_model(message, str(loaded.path.parent))
    try:
        message = (
            inline_local_functions(message)
            if loaded.source.functions
            else inline_selected_functions(message, lacking, inline_schema_functions=True)
        )
    except RuntimeError:  # onnx cannot state every operator that it defines as a function
        return loaded
    inlined = load(message)
    inlined.path = loaded.path
    return expanded(inlined, missing) if missing(inlined.ir) != lacking else inlined
