"""What inference found of values, read once for all values of which it is the same.

Most values of a model share their type with others, and reading it takes longer than all else that
is read of a value.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx
import onnx_ir as ir


@dataclass(frozen=True, slots=True)
class _ValueType:
    shape: ir.Shape | None
    """Frozen, so that many values can have it."""
    kind: ir.TypeProtocol | None

    @classmethod
    def of(cls, declared: onnx.TypeProto) -> _ValueType:
        return cls(
            ir.serde.deserialize_type_proto_for_shape(declared),
            ir.serde.deserialize_type_proto_for_type(declared),
        )


class ValueTypes:
    """The types of the inner values of a graph, taken out of its message."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        inner = {name for node in graph.node for name in node.output}
        inner.difference_update([output.name for output in graph.output])
        last = {value.name: value for value in graph.value_info}
        taken = {name: v for name, v in last.items() if name in inner and _has_type_only(v)}
        self._known: dict[bytes, _ValueType] = {}
        self._types = {name: self._of(value.type) for name, value in taken.items()}
        kept = [value for value in graph.value_info if value.name not in taken]
        del graph.value_info[:]
        graph.value_info.extend(kept)

    def give(self, graph: ir.Graph) -> None:
        """Let the values of the graph that was made of the message have their types."""
        for node in graph:
            for value in node.outputs:
                found = self._types.get(value.name or "")
                if found is not None:
                    value.shape, value.type = found.shape, found.kind

    def _of(self, declared: onnx.TypeProto) -> _ValueType:
        key = declared.SerializeToString()
        if key not in self._known:
            self._known[key] = _ValueType.of(declared)
        return self._known[key]


def _has_type_only(value: onnx.ValueInfoProto) -> bool:
    return not value.doc_string and not value.metadata_props
