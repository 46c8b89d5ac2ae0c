"""Models in a newer opset, for the operators that came with it."""

from __future__ import annotations

import onnx
from onnx import version_converter

from relayout.errors import RelayoutError, quoted
from relayout.graph.messages.walk import is_external, tensors_of
from relayout.graph.read import version_of


def raise_opset(message: onnx.ModelProto, version: int) -> onnx.ModelProto:
    """The model in a newer opset; the given one where it has this version already.

    The converter of onnx does the work. It holds neither functions nor data outside the file.
    """
    current = version_of({entry.domain: entry.version for entry in message.opset_import}, "")
    if version < current:
        raise RelayoutError(f"the model has opset {current}, which cannot be lowered to {version}")
    if version == current:
        return message
    newest = onnx.defs.onnx_opset_version()
    if version > newest:
        raise RelayoutError(f"opset {version} is not known here; the newest one is {newest}")
    if message.functions or any(is_external(tensor) for tensor, _ in tensors_of(message)):
        raise RelayoutError("a model with functions or external data cannot change its opset")
    try:
        raised = version_converter.convert_version(message, version)
    except (RuntimeError, ValueError, onnx.checker.ValidationError) as error:
        reason = quoted(" ".join(str(error).split()))
        raise RelayoutError(f"onnx cannot bring the model to opset {version}: {reason}") from None
    oldest = onnx.helper.find_min_ir_version_for(list(raised.opset_import), ignore_unknown=True)
    raised.ir_version = max(message.ir_version, oldest)
    _keep_interface(message, raised)
    _keep_metadata(message, raised)
    return raised


def _keep_interface(message: onnx.ModelProto, raised: onnx.ModelProto) -> None:
    """Let the outputs be declared as they were; the converter writes what it inferred."""
    del raised.graph.output[:]
    raised.graph.output.extend(message.graph.output)


def _keep_metadata(message: onnx.ModelProto, raised: onnx.ModelProto) -> None:
    """Give nodes of the main graph their metadata back, which the converter drops."""
    given = {name: node for node in message.graph.node for name in node.output if name}
    for node in raised.graph.node:
        origin = given.get(node.output[0]) if node.output else None
        if origin is not None and not node.metadata_props:
            node.metadata_props.extend(origin.metadata_props)
