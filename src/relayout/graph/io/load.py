"""Reads a model, refuses what is bad or unsafe, and prepares the rest for editing."""

from __future__ import annotations

import onnx
import onnx_ir as ir

from relayout.errors import BadModelError, quoted
from relayout.graph.io.bind import build
from relayout.graph.io.external import ExternalFiles
from relayout.graph.io.limits import check_imports, frozen_reason
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.sources import Given, ModelSource, given
from relayout.graph.io.tensors import check_inline
from relayout.graph.messages.apart import kept_apart, restore_names
from relayout.graph.messages.functions import expanded_size
from relayout.graph.messages.schemas import check_nodes
from relayout.graph.messages.scoping import check_scopes, sorted_copy
from relayout.graph.messages.skeleton import skeleton_of
from relayout.graph.messages.walk import is_external, tensors_of
from relayout.graph.shapes.infer import infer


def load(source: ModelSource, *, allow_hard_links: bool = False) -> LoadedModel:
    """A model that may be edited or, for the reason in `frozen`, only copied.

    Raises `BadModelError` for a model that is not valid or not safe to open.
    """
    start = given(source)
    try:
        return _examined(start, allow_hard_links=allow_hard_links)
    except BadModelError as error:
        if start.path is None:
            raise
        raise BadModelError(f"{quoted(str(start.path))}: {error}") from None


def reloaded(loaded: LoadedModel, message: onnx.ModelProto) -> LoadedModel:
    """A message that was made of a model's, with the same data files, ready for editing."""
    files = loaded.files
    restore_names(message, loaded.renamed)
    start = Given(message, loaded.path, files.folder, spill=loaded.spill)
    return _examined(start, allow_hard_links=files.allow_hard_links)


def _examined(start: Given, *, allow_hard_links: bool) -> LoadedModel:
    if not start.message.HasField("graph"):
        raise BadModelError("there is no graph in it, so it is not an ONNX model")
    loaded = LoadedModel(
        start.message,
        start.message,
        _external_files(start, allow_hard_links=allow_hard_links),
        path=start.path,
        data=start.data,
        spill=start.spill,
    )
    for tensor, place in tensors_of(start.message):
        if is_external(tensor):
            loaded.files.check(tensor, place)
        else:
            check_inline(tensor, place)
    loaded.frozen = frozen_reason(start.message)
    if loaded.frozen is None:
        _prepare(loaded)
    return loaded


def _external_files(start: Given, *, allow_hard_links: bool) -> ExternalFiles:
    if start.path is not None:
        return ExternalFiles.beside(start.path, allow_hard_links=allow_hard_links)
    if start.folder is None:
        return ExternalFiles(None)
    return ExternalFiles.beside(start.folder / "model.onnx", allow_hard_links=allow_hard_links)


def _prepare(loaded: LoadedModel) -> None:
    """Check the graph itself, infer shapes and build the form that passes edit."""
    check_imports(loaded.source)
    check_nodes(loaded.source)
    size = loaded.expanded_size = expanded_size(loaded.source)
    apart = kept_apart(loaded.source)
    loaded.source, loaded.renamed = apart.model, apart.given
    loaded.notices.extend(apart.notices)
    scopes = check_scopes(loaded.source)
    if scopes.passed_through:
        name = quoted(scopes.passed_through[0])
        loaded.frozen = f"a body of control flow gives back the outer value {name} as it is"
        return
    if scopes.unsorted:
        loaded.source = sorted_copy(loaded.source)
        loaded.notices.append("the nodes were not in an order in which they can run; sorted")
    try:
        inferred, notices = infer(skeleton_of(loaded.source), loaded.source, size)
        loaded.editable = build(inferred, loaded.source, loaded.files)
        loaded.notices.extend(notices)
    except UnicodeDecodeError as error:
        loaded.frozen = f"it holds text that is not UTF-8: {quoted(error.object[:40])}"
    except ir.serde.SerdeError as error:
        loaded.frozen = f"onnx-ir cannot hold it: {quoted(str(_root(error)))}"


def _root(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error
