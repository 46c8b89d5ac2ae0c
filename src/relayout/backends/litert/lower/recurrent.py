"""Recurrent layers, unrolled: what is read of the inputs in one product, then step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from relayout.backends.litert.call import LiteCall, LiteLowering
from relayout.backends.litert.flat_graph import FlatData, FlatTensor

MOST_STEPS = 512
"""A layer over more steps would be a file of too many operators."""

CellState: TypeAlias = tuple[FlatTensor, ...]
CellStep: TypeAlias = Callable[[LiteCall, FlatTensor, CellState, FlatData, FlatData], CellState]
"""From what is read of an input, the state, the recurrent weights and their biases to a state."""


def layer(gates: int, states: int, step: CellStep, activations: tuple[str, ...]) -> LiteLowering:
    """A layer whose cell has some gates; the first of its states is also its output."""

    def lower(call: LiteCall) -> Sequence[FlatTensor]:
        _check(call, activations)
        tensor = call.tensor(0)
        count = tensor.shape[0]
        if count > MOST_STEPS:
            raise call.refusal(f"it has {count} steps, more than the {MOST_STEPS} unrolled")
        way = call.view.string("direction", "forward")
        directions = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[way]
        runs = [
            _direction(call, index, gates, states, step, backwards=backwards)
            for index, backwards in enumerate(directions)
        ]
        return _results(call, runs, states)

    return lower


def _check(call: LiteCall, activations: tuple[str, ...]) -> None:
    names = call.view.node.attributes.get("activations")
    given = [] if names is None else [each.lower() for each in names.as_strings()]
    if given and tuple(given) != activations * (len(given) // len(activations)):
        raise call.refusal(f"its activations are {', '.join(given)}")
    if call.view.integer("layout", 0) or "clip" in call.view.node.attributes:
        raise call.refusal("it has its batch first, or clips")
    if call.view.integer("input_forget", 0) or call.has(7):
        raise call.refusal("its gates are tied, or look at the state of the cell")
    if call.has(4):
        lengths = call.known(4)
        if lengths is None or (lengths != call.tensor(0).shape[0]).any():
            raise call.refusal("its sequences have lengths of their own")


def _direction(
    call: LiteCall, index: int, gates: int, states: int, step: CellStep, *, backwards: bool
) -> tuple[list[FlatTensor], CellState]:
    """The outputs in the order of the steps, and the last state."""
    build, tensor = call.build, call.tensor(0)
    count, batch, _ = tensor.shape
    weight, recurrent = (call.constant(i, "weight")[index] for i in (1, 2))
    size = recurrent.shape[-1]
    biases = call.constant(3, "bias")[index] if call.has(3) else np.zeros(2 * gates * size)
    own, other = (each.astype(weight.dtype) for each in np.split(biases, 2))
    read = build.linear(tensor, build.constant(weight), build.constant(own))
    state = tuple(_initial(call, 5 + i, index, (batch, size)) for i in range(states))
    outputs: list[FlatTensor] = []
    for place in reversed(range(count)) if backwards else range(count):
        part = build.slice(read, (place, 0, 0), (1, batch, gates * size))
        part = build.reshape(part, (batch, gates * size))
        state = step(call, part, state, recurrent, other)
        outputs.append(state[0])
    return outputs[::-1] if backwards else outputs, state


def _initial(call: LiteCall, operand: int, index: int, shape: tuple[int, int]) -> FlatTensor:
    """The state before the first step; of a batch of constants that are alike, one."""
    if not call.has(operand):
        return call.build.constant(np.zeros((1, shape[1]), call.tensor(0).dtype))
    given = call.tensor(operand)
    if given.data is not None:
        rows = given.data[index]
        return call.build.constant(rows[:1] if (rows == rows[:1]).all() else rows)
    return call.build.reshape(call.build.slice(given, (index, 0, 0), (1, *shape)), shape)


def _results(
    call: LiteCall, runs: list[tuple[list[FlatTensor], CellState]], states: int
) -> Sequence[FlatTensor]:
    """All outputs as steps, directions, batch, size; then the last states."""
    build = call.build
    batch, size = runs[0][1][0].shape
    count = len(runs[0][0])
    sides = [
        build.concat([build.reshape(each, (1, 1, batch, size)) for each in outputs], 0)
        for outputs, _ in runs
    ]
    whole = build.reshape(build.concat(sides, 1), (count, len(runs), batch, size))
    lasts = [
        build.concat([build.reshape(run[1][i], (1, batch, size)) for run in runs], 0)
        for i in range(states)
    ]
    return [whole, *lasts]


def _recurrent(call: LiteCall, state: FlatTensor, weight: FlatData, bias: FlatData) -> FlatTensor:
    build = call.build
    return build.linear(state, build.constant(weight), build.constant(bias))


def _gate(call: LiteCall, tensor: FlatTensor, index: int, size: int) -> FlatTensor:
    return call.build.slice(tensor, (0, index * size), (tensor.shape[0], size))


def lstm_step(
    call: LiteCall, read: FlatTensor, state: CellState, weight: FlatData, bias: FlatData
) -> CellState:
    """Gates in the order input, output, forget, cell."""
    build, (hidden, cell) = call.build, state
    size = hidden.shape[1]
    total = build.broadcasting("ADD", [read, _recurrent(call, hidden, weight, bias)])
    opened = build.unary("LOGISTIC", build.slice(total, (0, 0), (total.shape[0], 3 * size)))
    take, give, keep = (_gate(call, opened, index, size) for index in range(3))
    new = build.unary("TANH", _gate(call, total, 3, size))
    kept, taken = build.broadcasting("MUL", [keep, cell]), build.broadcasting("MUL", [take, new])
    cell = build.broadcasting("ADD", [kept, taken])
    return build.broadcasting("MUL", [give, build.unary("TANH", cell)]), cell


def gru_step(
    call: LiteCall, read: FlatTensor, state: CellState, weight: FlatData, bias: FlatData
) -> CellState:
    """Gates in the order update, reset, hidden."""
    build, (hidden,) = call.build, state
    size = hidden.shape[1]
    rows = (read.shape[0], 2 * size)
    gates = _recurrent(call, hidden, weight[: 2 * size], bias[: 2 * size])
    opened = build.unary(
        "LOGISTIC", build.broadcasting("ADD", [build.slice(read, (0, 0), rows), gates])
    )
    update, reset = (_gate(call, opened, index, size) for index in range(2))
    if call.view.integer("linear_before_reset", 0):
        own = _recurrent(call, hidden, weight[2 * size :], bias[2 * size :])
        own = build.broadcasting("MUL", [reset, own])
    else:
        masked = build.broadcasting("MUL", [reset, hidden])
        own = _recurrent(call, masked, weight[2 * size :], bias[2 * size :])
    new = build.unary("TANH", build.broadcasting("ADD", [_gate(call, read, 2, size), own]))
    change = build.broadcasting("MUL", [update, build.broadcasting("SUB", [hidden, new])])
    return (build.broadcasting("ADD", [new, change]),)


def rnn_step(
    call: LiteCall, read: FlatTensor, state: CellState, weight: FlatData, bias: FlatData
) -> CellState:
    total = call.build.broadcasting("ADD", [read, _recurrent(call, state[0], weight, bias)])
    return (call.build.unary("TANH", total),)


LOWERINGS: dict[str, LiteLowering] = {
    "GRU": layer(3, 1, gru_step, ("sigmoid", "tanh")),
    "LSTM": layer(4, 2, lstm_step, ("sigmoid", "tanh", "tanh")),
    "RNN": layer(1, 1, rnn_step, ("tanh",)),
}
