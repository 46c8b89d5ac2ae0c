"""What a model file promises its callers: names, types and shapes of inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import onnx

from relayout.verify.messages import message_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Dim = int | str

# From this version of the format on, an initialiser that is also an input is a default value.
DEFAULTS_SINCE_IR = 4
# Exporters write these where they know no name: two of them need not be the same size.
NAMELESS = ("", "?")


class UnreadableModelError(Exception):
    """A file that is not an ONNX model."""


@dataclass(frozen=True)
class Port:
    """One input or output; `dims` is None where the rank is not known."""

    name: str
    kind: str
    element: int = onnx.TensorProto.UNDEFINED
    dims: tuple[Dim, ...] | None = None
    default: tuple[int, ...] | None = None

    @property
    def type_text(self) -> str:
        element = onnx.TensorProto.DataType.Name(self.element).lower()
        return element if self.kind == "tensor" else f"{self.kind}({element})"

    @property
    def free(self) -> dict[int, str]:
        """The axes whose size is open, each with the name of its size."""
        return {axis: dim for axis, dim in enumerate(self.dims or ()) if isinstance(dim, str)}


@dataclass(frozen=True)
class Interface:
    """`optional` inputs have a default value in the model."""

    required: tuple[Port, ...]
    optional: tuple[Port, ...]
    outputs: tuple[Port, ...]
    has_defaults: bool

    def without_defaults(self) -> Interface:
        """The interface once defaults are constants, which callers cannot replace."""
        return replace(self, optional=())


def interface_of(path: Path) -> Interface:
    return interface_of_model(_checked(path))


def interface_of_model(model: onnx.ModelProto) -> Interface:
    graph = model.graph
    has_defaults = model.ir_version >= DEFAULTS_SINCE_IR
    defaults = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    defaults |= {s.values.name: tuple(s.dims) for s in graph.sparse_initializer}
    inputs = [_port(value, defaults.get(value.name)) for value in graph.input]
    return Interface(
        required=tuple(port for port in inputs if port.default is None),
        optional=tuple(port for port in inputs if port.default is not None and has_defaults),
        outputs=tuple(_port(value) for value in graph.output),
        has_defaults=has_defaults,
    )


def interface_change(before: Interface, after: Interface) -> str:
    """What a caller would notice, or nothing."""
    change = _ports_change("input", before.required, after.required)
    if not change and before.has_defaults:
        change = _ports_change("optional input", before.optional, after.optional)
    return change or _ports_change("output", before.outputs, after.outputs)


def _checked(path: Path) -> onnx.ModelProto:
    try:
        model = message_of(path)
    except OSError as error:
        raise UnreadableModelError(f"cannot open '{path}': {error.strerror}") from error
    except Exception as error:  # the parser's own class lies in a library without types
        raise UnreadableModelError(f"'{path}' is not an ONNX model: {error}") from error
    if not model.HasField("graph"):
        raise UnreadableModelError(f"'{path}' is not an ONNX model: it has no graph")
    return model


def _port(value: onnx.ValueInfoProto, default: tuple[int, ...] | None = None) -> Port:
    kind, tensor = _tensor_of(value.type)
    if tensor is None:
        return Port(value.name, kind)
    dims = _dims(value.name, tensor) if tensor.HasField("shape") else None
    return Port(value.name, kind, tensor.elem_type, dims, default)


def _tensor_of(
    type_proto: onnx.TypeProto,
) -> tuple[str, onnx.TypeProto.Tensor | None]:
    """The kind of a value, and the tensor it consists of where there is one kind of them."""
    kind = (type_proto.WhichOneof("value") or "untyped").removesuffix("_type")
    if kind == "tensor":
        return kind, type_proto.tensor_type
    if kind not in ("sequence", "optional"):
        return kind, None
    inner_kind, tensor = _tensor_of(getattr(type_proto, f"{kind}_type").elem_type)
    return (kind, tensor) if inner_kind == "tensor" else (f"{kind}({inner_kind})", None)


def _dims(name: str, tensor: onnx.TypeProto.Tensor) -> tuple[Dim, ...]:
    return tuple(_dim(dim, nameless=f"{name}[{axis}]") for axis, dim in enumerate(tensor.shape.dim))


def _dim(dim: onnx.TensorShapeProto.Dimension, nameless: str) -> Dim:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return dim.dim_value
    return nameless if dim.dim_param in NAMELESS else dim.dim_param


def _ports_change(what: str, before: Sequence[Port], after: Sequence[Port]) -> str:
    names = [port.name for port in before]
    new_names = [port.name for port in after]
    if names != new_names:
        return f"the {what}s {names} became {new_names}"
    changes = (_port_change(what, *pair) for pair in zip(before, after, strict=True))
    return next((change for change in changes if change), "")


def _port_change(what: str, before: Port, after: Port) -> str:
    if before.type_text != after.type_text:
        return (
            f"the type of {what} '{before.name}' changed"
            f" from {before.type_text} to {after.type_text}"
        )
    if before.dims != after.dims:
        return (
            f"the shape of {what} '{before.name}' changed"
            f" from {_shape_text(before.dims)} to {_shape_text(after.dims)}"
        )
    return ""


def _shape_text(dims: tuple[Dim, ...] | None) -> str:
    return "unknown" if dims is None else f"[{', '.join(map(str, dims))}]"
