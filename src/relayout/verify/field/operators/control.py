"""Branches and loops: bodies are run with true conditions and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from relayout.verify.field.call import at_one_type
from relayout.verify.field.values import (
    FieldTensor,
    TooLargeError,
    UnknownError,
    UnknownValue,
    true_tensor,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnx

    from relayout.verify.field.call import Computed, FieldCall, FieldKernel
    from relayout.verify.field.values import FieldValue


def truth(tensor: FieldTensor) -> bool:
    """A condition; one that is computed from floats is as its residue is odd or even."""
    number = tensor.data.ravel()[0]
    return bool(number) if tensor.is_true else bool(number & 1)


def branch(call: FieldCall) -> Computed:
    """One of both bodies; where the inputs decide, the caller may force it."""
    condition = call.tensor(0)
    taken = truth(condition)
    if condition.fed or not condition.is_true:
        call.context.decided = True
        taken = taken if call.context.forced is None else call.context.forced
    body = call.attributes["then_branch" if taken else "else_branch"]
    return tuple(call.run_body(body, ()))


def loop(call: FieldCall) -> Computed:
    body: onnx.GraphProto = call.attributes["body"]
    limit = call.integers(0)[0] if call.has(0) else call.context.limits.rounds + 1
    going = truth(call.tensor(1)) if call.has(1) else True
    carried = list(call.operands[2:])
    rows: list[list[FieldValue]] = []
    while going and len(rows) < limit:
        if len(rows) >= call.context.limits.rounds:
            raise TooLargeError(f"a loop of more than {call.context.limits.rounds} rounds")
        count = true_tensor(np.array(len(rows), np.int64))
        again, *results = call.run_body(body, (count, true_tensor(np.array(True)), *carried))
        carried = results[: len(carried)]
        rows.append(results[len(carried) :])
        going = truth(_tensor(again))
    scanned = len(body.output) - 1 - len(carried)
    return *carried, *(_stacked([row[i] for row in rows], 0) for i in range(scanned))


def _tensor(value: FieldValue) -> FieldTensor:
    if isinstance(value, UnknownValue):
        raise UnknownError(value.reason)
    if not isinstance(value, FieldTensor):
        raise UnknownError("a body has a result that is not a tensor")
    return value


def _stacked(values: Sequence[FieldValue], axis: int) -> FieldTensor:
    if not values:
        raise UnknownError("no round, so the lengths of what it collects are not known")
    arrays, kind = at_one_type([_tensor(value) for value in values])
    return kind.with_data(np.stack(arrays, axis))


def scan(call: FieldCall) -> Computed:
    if call.version < 9:
        raise UnknownError("of opset 8")
    body: onnx.GraphProto = call.attributes["body"]
    count = call.integer("num_scan_inputs", 0)
    states = list(call.operands[: len(call.operands) - count])
    given = [_tensor(value) for value in call.operands[len(states) :]]
    backward = call.listed("scan_input_directions", [0] * count)
    axes = call.listed("scan_input_axes", [0] * count)
    rounds = given[0].shape[axes[0]]
    rows = []
    for step in range(rounds):
        slices = [
            each.with_data(np.take(each.data, rounds - 1 - step if back else step, axis))
            for each, axis, back in zip(given, axes, backward, strict=True)
        ]
        results = call.run_body(body, (*states, *slices))
        states = results[: len(states)]
        rows.append(results[len(states) :])
    return *states, *_collected(call, rows, len(body.output) - len(states))


def _collected(call: FieldCall, rows: list[list[FieldValue]], count: int) -> list[FieldValue]:
    backward = call.listed("scan_output_directions", [0] * count)
    axes = call.listed("scan_output_axes", [0] * count)
    ordered = [rows[::-1] if back else rows for back in backward]
    return [_stacked([row[i] for row in ordered[i]], axes[i]) for i in range(count)]


KERNELS: dict[str, FieldKernel] = {"If": branch, "Loop": loop, "Scan": scan}
