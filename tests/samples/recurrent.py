"""Samples for `relayout.ops.recurrent`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from relayout.ops.recurrent import LAYOUT_VERSION
from tests.samples.sample import Array, Sample, unit, versions

if TYPE_CHECKING:
    from collections.abc import Iterator

TIME, BATCH, WIDTH, HIDDEN = 5, 3, 2, 4
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _operands(op_type: str, directions: int, *, batch_first: bool) -> list[Array | None]:
    gates = GATES[op_type] * HIDDEN
    signal = unit(TIME, BATCH, WIDTH)
    states = [unit(directions, BATCH, HIDDEN) / (1 + index) for index in range(2)]
    if batch_first:
        signal, *states = (np.ascontiguousarray(x.swapaxes(0, 1)) for x in (signal, *states))
    weights = [unit(directions, gates, WIDTH), unit(directions, gates, HIDDEN)]
    bias = unit(directions, 2 * gates)
    if op_type != "LSTM":
        return [signal, *weights, bias, None, states[0]]
    return [signal, *weights, bias, None, *states, unit(directions, 3 * HIDDEN)]


def _sample(op_type: str, version: int, operands: list[Array | None], **more: Any) -> Sample:
    attributes = {"hidden_size": HIDDEN, **more.pop("attributes", {})}
    outputs = 3 if op_type == "LSTM" else 2
    admits = attributes.get("layout", 0)
    return Sample(
        op_type,
        version,
        operands,
        attributes,
        outputs=outputs,
        admits=admits,
        tolerance=1e-6,
        **more,
    )


def _all() -> Iterator[Sample]:
    for op_type in GATES:
        for version in versions(op_type):
            operands = _operands(op_type, 1, batch_first=False)
            yield _sample(op_type, version, operands, note="time first")
            yield _sample(op_type, version, operands[:3], note="no states")
        for version in versions(op_type, oldest=LAYOUT_VERSION):
            operands = _operands(op_type, 1, batch_first=True)
            swapped = {"layout": 1}
            yield _sample(op_type, version, operands, attributes=swapped, note="batch first")
            yield _sample(
                op_type,
                version,
                operands,
                attributes=swapped,
                unused=frozenset({1}),
                note="no last state",
            )


def _two_directions() -> Iterator[Sample]:
    attributes = {"direction": "bidirectional", "layout": 1}
    for op_type in GATES:
        operands = _operands(op_type, 2, batch_first=True)
        yield _sample(op_type, 22, operands, attributes=attributes, note="bidirectional")


SAMPLES: list[Sample] = [*_all(), *_two_directions()]
