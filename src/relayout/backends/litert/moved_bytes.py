"""Quantisers before what only moves numbers, so that bytes are moved in the place of floats.

A builtin and the quantiser of its result are next to each other then, and can be one builtin on
bytes. A quantiser has one step for all elements here, so both orders give the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from relayout.backends.litert.flat_graph import FlatGraph, FlatOperator, FlatTensor

MOVES = frozenset({"PAD", "RESHAPE", "TRANSPOSE", "SLICE", "STRIDED_SLICE"})
"""Builtins of one tensor that compute nothing: what they make of bytes has the same steps."""


def quantised_first(graph: FlatGraph) -> FlatGraph:
    """The graph with QUANTIZEs before moves, and none of what has been quantised alike."""
    _Exchange(graph).run()
    _remove_repeated(graph)
    return graph


@dataclass(slots=True)
class _Exchange:
    graph: FlatGraph
    places: dict[FlatTensor, int] = field(default_factory=dict)
    """By tensor, the place of the operator that makes it."""
    readers: dict[FlatTensor, list[FlatOperator]] = field(default_factory=dict)

    def run(self) -> None:
        self.readers = self.graph.consumers()
        for place, operator in enumerate(self.graph.operators):
            self.places.update(dict.fromkeys(operator.outputs, place))
        for place in reversed(range(len(self.graph.operators))):
            self._exchange(place)

    def _exchange(self, place: int) -> None:
        """Let a quantiser and the move before it change places."""
        operators, quantiser = self.graph.operators, self.graph.operators[place]
        before = self._move_before(quantiser)
        if before is None:
            return
        move, result = operators[before], quantiser.outputs[0]
        source = move.inputs[0]
        if source is None:
            return
        narrow = FlatTensor(f"{result.name}/{before}", source.shape, result.dtype)
        narrow.steps = result.steps
        operators[before] = replace(quantiser, inputs=(source,), outputs=(narrow,))
        operators[place] = replace(move, inputs=(narrow, *move.inputs[1:]), outputs=(result,))
        self.places[narrow] = before

    def _move_before(self, quantiser: FlatOperator) -> int | None:
        """The place of a move of floats whose result only a quantiser reads."""
        tensor = quantiser.inputs[0]
        if quantiser.builtin != "QUANTIZE" or tensor is None or tensor in self.graph.outputs:
            return None
        place = self.places.get(tensor)
        is_move = place is not None and self.graph.operators[place].builtin in MOVES
        is_alone = len(self.readers.get(tensor, [])) == 1
        return place if is_move and is_alone and tensor.dtype == np.float32 else None


def _remove_repeated(graph: FlatGraph) -> None:
    """Remove quantisers that give the bytes which a DEQUANTIZE has just read."""
    makers = {tensor: each for each in graph.operators for tensor in each.outputs}
    same: dict[FlatTensor, FlatTensor] = {}
    for operator in graph.operators:
        operator.inputs = tuple(t if t is None else same.get(t, t) for t in operator.inputs)
        result = operator.outputs[0]
        source = _source(operator, makers)
        is_same = source is not None and (source.dtype, source.steps) == (
            result.dtype,
            result.steps,
        )
        if source is not None and is_same and result not in graph.outputs:
            same[result] = source
    graph.remove_dead()


def _source(quantiser: FlatOperator, makers: dict[FlatTensor, FlatOperator]) -> FlatTensor | None:
    """The bytes whose numbers a quantiser reads."""
    tensor = quantiser.inputs[0] if quantiser.builtin == "QUANTIZE" else None
    maker = None if tensor is None else makers.get(tensor)
    return maker.inputs[0] if maker is not None and maker.builtin == "DEQUANTIZE" else None
