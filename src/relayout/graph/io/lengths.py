"""Models whose inputs have lengths that were left open."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from relayout.errors import RelayoutError, quoted
from relayout.graph.io.load import reloaded
from relayout.graph.io.model import LoadedModel


def with_lengths(
    loaded: LoadedModel, shapes: Mapping[str, tuple[int, ...]], dims: Mapping[str, int]
) -> LoadedModel:
    """The model with the given shapes of inputs, and lengths in place of symbols.

    What was recorded of other values may not hold for them, so it is inferred anew.
    """
    names = {value.name for value in loaded.source.graph.input}
    strange = [name for name in shapes if name not in names]
    if strange:
        raise RelayoutError(f"the model has no input {quoted(strange[0])}")
    message = onnx.ModelProto()
    message.CopyFrom(loaded.source)
    changed = [_fix(value, shapes, dims) for value in message.graph.input]
    if not any(changed):
        return loaded
    del message.graph.value_info[:]
    for value in message.graph.output:
        value.type.tensor_type.ClearField("shape")
    return reloaded(loaded, message)


def open_lengths(loaded: LoadedModel) -> dict[str, set[int]]:
    """By symbol, the axes of inputs that have it; a length without a name is one of its own."""
    found: dict[str, set[int]] = {}
    for value in loaded.source.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if not _is_known(dim):
                found.setdefault(_symbol(value.name, axis, dim), set()).add(axis)
    return found


def _symbol(name: str, axis: int, dim: onnx.TensorShapeProto.Dimension) -> str:
    return dim.dim_param or f"{name}[{axis}]"


def _is_known(dim: onnx.TensorShapeProto.Dimension) -> bool:
    return bool(dim.HasField("dim_value") and dim.dim_value >= 0)


def _fix(
    value: onnx.ValueInfoProto, shapes: Mapping[str, tuple[int, ...]], dims: Mapping[str, int]
) -> bool:
    """Give an input its lengths; whether one of them was open."""
    if value.type.WhichOneof("value") != "tensor_type":
        return False
    tensor = value.type.tensor_type
    asked = shapes.get(value.name)
    if asked is not None and not tensor.HasField("shape"):
        tensor.shape.CopyFrom(onnx.TensorShapeProto())
        tensor.shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in asked)
    if asked is not None and len(asked) != len(tensor.shape.dim):
        raise RelayoutError(f"input {quoted(value.name)} has {len(tensor.shape.dim)} axes")
    changed = False
    for axis, dim in enumerate(tensor.shape.dim):
        name = _symbol(value.name, axis, dim)
        length = dims.get(name) if asked is None else asked[axis]
        if _is_known(dim):
            if length not in {None, dim.dim_value}:
                raise RelayoutError(
                    f"axis {axis} of input {quoted(value.name)} has length {dim.dim_value}"
                )
        elif length is not None:
            dim.Clear()
            dim.dim_value = length
            changed = True
    return changed
