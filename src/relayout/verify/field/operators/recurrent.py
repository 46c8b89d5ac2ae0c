"""Recurrent networks, step by step; activations are hashes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from relayout.verify.field.hashing import hashed
from relayout.verify.field.operators.activation import ZERO, function
from relayout.verify.field.operators.arithmetic import largest
from relayout.verify.field.residues import added, multiplied, subtracted
from relayout.verify.field.values import UnknownError

if TYPE_CHECKING:
    from relayout.verify.field.call import Computed, FieldCall, FieldKernel
    from relayout.verify.field.residues import Residues

DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}

_Step = Callable[["_Cell", "Residues", "Residues", "Residues"], "tuple[Residues, Residues]"]


@dataclass(frozen=True)
class _Cell:
    """One direction of a network: its weights, inputs first, and its activations."""

    call: FieldCall
    weight: Residues
    recurrence: Residues
    input_bias: Residues
    hidden_bias: Residues
    peepholes: Residues | None
    activations: list[str]

    @property
    def size(self) -> int:
        return int(self.recurrence.shape[0])

    def activated(self, place: int, numbers: Residues) -> Residues:
        name = self.activations[place]
        numbers = self._clipped(numbers)
        if name == "Relu":
            return largest(self.call, numbers, ZERO)
        alphas = self.call.attributes.get("activation_alpha", ())
        betas = self.call.attributes.get("activation_beta", ())
        if alphas or betas:
            key = self.call.key(name, tuple(alphas), tuple(betas))
            return hashed(key, [numbers])
        return function(self.call, name, numbers)

    def _clipped(self, numbers: Residues) -> Residues:
        clip = self.call.attributes.get("clip")
        return numbers if clip is None else hashed(self.call.key("clip", clip), [numbers])

    def gate(self, numbers: Residues, place: int) -> Residues:
        return numbers[..., place * self.size : (place + 1) * self.size]


def _rnn(
    cell: _Cell, given: Residues, hidden: Residues, memory: Residues
) -> tuple[Residues, Residues]:
    total = added(added(given, cell.call.product(hidden, cell.recurrence)), cell.hidden_bias)
    return cell.activated(0, total), memory


def _gru(
    cell: _Cell, given: Residues, hidden: Residues, memory: Residues
) -> tuple[Residues, Residues]:
    """Gates: update, reset, hidden."""
    size = cell.size
    past = cell.call.product(hidden, cell.recurrence[:, : 2 * size])
    gates = added(added(given[:, : 2 * size], past), cell.hidden_bias[: 2 * size])
    update = cell.activated(0, gates[:, :size])
    reset = cell.activated(0, gates[:, size:])
    weight, bias = cell.recurrence[:, 2 * size :], cell.hidden_bias[2 * size :]
    if cell.call.integer("linear_before_reset", 0):
        inner = multiplied(reset, added(cell.call.product(hidden, weight), bias))
    else:
        inner = added(cell.call.product(multiplied(reset, hidden), weight), bias)
    fresh = cell.activated(1, added(given[:, 2 * size :], inner))
    kept = multiplied(subtracted(1, update), fresh)
    return added(kept, multiplied(update, hidden)), memory


def _lstm(
    cell: _Cell, given: Residues, hidden: Residues, memory: Residues
) -> tuple[Residues, Residues]:
    """Gates: input, output, forget, cell; peepholes: input, output, forget."""
    total = added(added(given, cell.call.product(hidden, cell.recurrence)), cell.hidden_bias)
    into, out, forget, fresh = (cell.gate(total, place) for place in range(4))
    if cell.peepholes is not None:
        into = added(into, multiplied(cell.gate(cell.peepholes, 0), memory))
        forget = added(forget, multiplied(cell.gate(cell.peepholes, 2), memory))
    kept = multiplied(cell.activated(0, forget), memory)
    memory = added(kept, multiplied(cell.activated(0, into), cell.activated(1, fresh)))
    if cell.peepholes is not None:
        out = added(out, multiplied(cell.gate(cell.peepholes, 1), memory))
    return multiplied(cell.activated(0, out), cell.activated(2, memory)), memory


def _network(call: FieldCall, *, step: _Step) -> Computed:
    """Every direction over time; inputs are time, batch, size unless `layout` is 1."""
    if call.integer("input_forget", 0):
        raise UnknownError("with coupled gates")
    batch_first = call.integer("layout", 0)
    numbers = call.residues(0)
    numbers = numbers.transpose(1, 0, 2) if batch_first else numbers
    times, batch, _ = numbers.shape
    lengths = call.integers(4) if call.has(4) else [times] * batch
    directions = call.residues(1).shape[0]
    outputs, hiddens, memories = [], [], []
    for direction in range(directions):
        cell = _cell(call, direction)
        backward = call.text("direction", "forward") == "reverse" or direction == 1
        hidden, memory = (_initial(call, place, direction, batch, cell.size) for place in (5, 6))
        course = _Course(numbers, np.asarray(lengths), backward)
        output, hidden, memory = _over_time(cell, step, course, (hidden, memory))
        outputs.append(output)
        hiddens.append(hidden)
        memories.append(memory)
    stacked = np.stack(outputs, 1), np.stack(hiddens), np.stack(memories)
    if batch_first:
        all_times, last, cells = stacked
        stacked = all_times.transpose(2, 0, 1, 3), last.transpose(1, 0, 2), cells.transpose(1, 0, 2)
    results = tuple(call.like(each) for each in stacked)
    return results if call.op_type == "LSTM" else results[:2]


@dataclass(frozen=True)
class _Course:
    """Inputs over time, how long each entry of the batch lasts, and whether time runs backward."""

    numbers: Residues
    lengths: Residues
    backward: bool

    def times(self) -> Sequence[int]:
        times = range(self.numbers.shape[0])
        return times[::-1] if self.backward else times


def _over_time(
    cell: _Cell, step: _Step, course: _Course, state: tuple[Residues, Residues]
) -> tuple[Residues, Residues, Residues]:
    """All states; entries of a batch that have ended keep their last one and give 0."""
    hidden, memory = state
    given = added(cell.call.product(course.numbers, cell.weight), cell.input_bias)
    outputs = np.zeros((*course.numbers.shape[:2], cell.size), np.int64)
    for time in course.times():
        going = (time < course.lengths)[:, None]
        new_hidden, new_memory = step(cell, given[time], hidden, memory)
        hidden = np.where(going, new_hidden, hidden)
        memory = np.where(going, new_memory, memory)
        outputs[time] = np.where(going, new_hidden, 0)
    return outputs, hidden, memory


def _cell(call: FieldCall, direction: int) -> _Cell:
    weight, recurrence = call.residues(1)[direction].T, call.residues(2)[direction].T
    width = weight.shape[1]
    bias = call.residues(3)[direction] if call.has(3) else np.zeros(2 * width, np.int64)
    names = call.attributes.get("activations") or DEFAULTS[call.op_type] * 2
    count = len(DEFAULTS[call.op_type])
    return _Cell(
        call=call,
        weight=weight,
        recurrence=recurrence,
        input_bias=bias[:width],
        hidden_bias=bias[width:],
        peepholes=call.residues(7)[direction] if call.has(7) else None,
        activations=list(names)[direction * count : (direction + 1) * count],
    )


def _initial(call: FieldCall, place: int, direction: int, batch: int, size: int) -> Residues:
    if not call.has(place):
        return np.zeros((batch, size), np.int64)
    state = call.residues(place)
    return state[:, direction] if call.integer("layout", 0) else state[direction]


KERNELS: dict[str, FieldKernel] = {
    "RNN": partial(_network, step=_rnn),
    "GRU": partial(_network, step=_gru),
    "LSTM": partial(_network, step=_lstm),
}
