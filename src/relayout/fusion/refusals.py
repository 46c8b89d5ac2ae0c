"""Why operators that follow each other did not share a kernel, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from relayout.fusion.codes import Code, Why
from relayout.fusion.expressions import Tag
from relayout.fusion.forward_graph import Vertex
from relayout.fusion.groups import Limits, MergeRefusal
from relayout.fusion.naming import named, opaque_reason, stop_reason
from relayout.fusion.post_dominators import Dominator
from relayout.fusion.translate import Translation
from relayout.fusion.unions import Union
from relayout.ops.kind import Kind


class Refusals:
    """States what the phases refused; what has been merged after all is not a refusal."""

    def __init__(
        self,
        translation: Translation,
        dominators: Sequence[Dominator],
        unions: Sequence[Union],
        limits: Limits,
    ) -> None:
        self._translation = translation
        self._dominators = dominators
        self._unions = unions
        self._limits = limits

    def stated(self, order: Sequence[Vertex], whys: dict[int, Why]) -> Iterator[MergeRefusal]:
        for vertex in order:
            producer = operator_of(vertex)
            why = whys.get(vertex.index)
            if producer is None or why is None or not vertex.uses:
                continue
            if self._is_merged(vertex):
                continue
            end = vertex.uses[0][0] if why.at is None else order[why.at]
            consumer = operator_of(end)
            yield self._refusal(vertex, producer, end, consumer, why.code)

    def _is_merged(self, vertex: Vertex) -> bool:
        whole = self._unions[vertex.index].find()
        return all(self._unions[reader.index].find() is whole for reader, _kind in vertex.uses)

    def _refusal(
        self, vertex: Vertex, producer: ir.Node, end: Vertex, consumer: ir.Node | None, code: Code
    ) -> MergeRefusal:
        if code is Code.OPAQUE:
            return MergeRefusal(
                producer, consumer, *opaque_reason(producer, self._translation.fusings[producer])
            )
        if code is Code.EXTERN and producer in self._translation.settled.stops:
            return MergeRefusal(producer, None, Code.STOP, stop_reason(producer))
        if code is Code.EXTERN:
            return MergeRefusal(
                producer, None, code, f"{named(producer)} is read outside the graph"
            )
        if code is Code.NO_POST_DOMINATOR:
            return MergeRefusal(producer, None, code, _never_meet(vertex, producer))
        if code is Code.DEPTH:
            most = f"more than {self._limits.max_depth} operators would share a kernel"
            return MergeRefusal(producer, consumer, code, most)
        if code is Code.ARGUMENTS:
            most = f"the kernel would take more than {self._limits.max_args} arguments"
            return MergeRefusal(producer, consumer, code, most)
        return self._by_kind(vertex, producer, end, consumer, code)

    def _by_kind(
        self, vertex: Vertex, producer: ir.Node, end: Vertex, consumer: ir.Node | None, code: Code
    ) -> MergeRefusal:
        kind = self._unions[vertex.index].kind
        whole = self._unions[end.index].find().kind
        if whole is Kind.OPAQUE and consumer is not None:
            return MergeRefusal(
                producer, consumer, *opaque_reason(consumer, self._translation.fusings[consumer])
            )
        if code is Code.TUPLE_SINK:
            return MergeRefusal(producer, consumer, code, "the tensors named together stay apart")
        if kind is Kind.REDUCTION:
            reason = f"{named(producer)} reduces, and nothing follows a reduction in its kernel"
            return MergeRefusal(producer, consumer, Code.REDUCTION_SOURCE, reason)
        if kind is Kind.COMPLEX and whole is Kind.COMPLEX:
            reason = "both sides hold a complex operator"
            return MergeRefusal(producer, consumer, Code.TWO_ANCHORS, reason)
        between = self._dominators[vertex.index].between
        if kind <= Kind.INJECTIVE and between is Kind.COMPLEX:
            reason = f"nothing is computed while {_word(consumer)} reads its operands"
            return MergeRefusal(producer, consumer, Code.COMPLEX_PROLOGUE, reason)
        if kind is Kind.INJECTIVE and whole is Kind.REDUCTION:
            reason = f"{named(producer)} moves elements, and a reduction reads them in place"
            return MergeRefusal(producer, consumer, Code.INJECTIVE_INTO_REDUCTION, reason)
        facts = f"the way to {_word(consumer)} is {_kind(between)}, the group there {_kind(whole)}"
        return MergeRefusal(
            producer, consumer, code, f"{named(producer)} is {_kind(kind)}, {facts}"
        )


def operator_of(vertex: Vertex) -> ir.Node | None:
    """The operator that a vertex is, bundles operands for, or is one result of."""
    expression = vertex.expression
    if expression.tag is Tag.FIELD:
        expression = expression.args[0]
    is_operator = expression.tag in {Tag.CALL, Tag.CONTROL, Tag.TUPLE}
    return expression.source if is_operator else None


def _never_meet(vertex: Vertex, producer: ir.Node) -> str:
    readers = [operator_of(reader) for reader, _kind in vertex.uses]
    first, last = _word(readers[0]), _word(readers[-1])
    return f"what reads {named(producer)}, {first} and {last}, never meets again"


def _word(node: ir.Node | None) -> str:
    return "nothing" if node is None else named(node)


def _kind(kind: Kind) -> str:
    return kind.name.lower()
