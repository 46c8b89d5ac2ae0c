"""What a run over the field shows of each output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from relayout.verify.field.values import FieldSequence, FieldTensor, FieldValue, UnknownValue

FieldStatus = Literal["equal", "differs", "unknown"]


@dataclass(frozen=True, slots=True)
class FieldOutput:
    """One output: where it first differs, or why nothing is known."""

    name: str
    status: FieldStatus
    reason: str = ""
    index: tuple[int, ...] = ()
    before: int | str = ""
    after: int | str = ""


@dataclass(frozen=True, slots=True)
class FieldVerdict:
    """All outputs of a model in its order.

    'equal' holds over the field, so for all sums, however they are ordered, and up to collisions of
    hashes. 'differs' may be rounding alone: a constant that was folded and rounded is another
    number.
    `elements` counts what was compared in outputs that are equal.
    """

    outputs: tuple[FieldOutput, ...]
    elements: int = 0
    misfit: bool = False
    """Whether the given model does not run at these lengths, or is too large at them."""
    too_large: bool = False

    @property
    def status(self) -> FieldStatus:
        found = {output.status for output in self.outputs}
        if "differs" in found:
            return "differs"
        return "equal" if found == {"equal"} and self.elements else "unknown"

    @property
    def reason(self) -> str:
        """Why it is not equal, of the first output that is not."""
        for output in self.outputs:
            if output.status == self.status and output.reason:
                return f"output '{output.name}': {output.reason}"
        return "" if self.status == "equal" else "nothing was compared"

    def merged(self, other: FieldVerdict) -> FieldVerdict:
        """Both verdicts on one pair of models: what differs once differs."""
        pairs = zip(self.outputs, other.outputs, strict=True)
        return FieldVerdict(tuple(_worse(*pair) for pair in pairs), self.elements + other.elements)


def all_unknown(names: list[str], reason: str, *, too_large: bool = False) -> FieldVerdict:
    outputs = tuple(FieldOutput(name, "unknown", reason) for name in names)
    return FieldVerdict(outputs, misfit=too_large, too_large=too_large)


def _worse(left: FieldOutput, right: FieldOutput) -> FieldOutput:
    order = ("equal", "unknown", "differs")
    return max(left, right, key=lambda output: order.index(output.status))


def compared(name: str, before: FieldValue, after: FieldValue) -> tuple[FieldOutput, int]:
    """The verdict on one output, and how many elements are equal."""
    for which, value in (("given", before), ("second", after)):
        if isinstance(value, UnknownValue):
            return FieldOutput(name, "unknown", f"in the {which} model: {value.reason}"), 0
    if isinstance(before, FieldSequence) and isinstance(after, FieldSequence):
        return _sequences(name, before, after)
    if not isinstance(before, FieldTensor) or not isinstance(after, FieldTensor):
        return _other(name, "one of both has no tensor there"), 0
    return _tensors(name, before, after)


def _other(name: str, reason: str) -> FieldOutput:
    return FieldOutput(name, "differs", reason)


def _sequences(name: str, before: FieldSequence, after: FieldSequence) -> tuple[FieldOutput, int]:
    if len(before.items) != len(after.items):
        return _other(name, f"{len(before.items)} tensors became {len(after.items)}"), 0
    total = 0
    for pair in zip(before.items, after.items, strict=True):
        output, count = _tensors(name, *pair)
        if output.status != "equal":
            return output, 0
        total += count
    return FieldOutput(name, "equal"), total


def _tensors(name: str, before: FieldTensor, after: FieldTensor) -> tuple[FieldOutput, int]:
    if before.element != after.element:
        return _other(name, "its type changed"), 0
    if before.shape != after.shape:
        return _other(name, f"its shape {before.shape} became {after.shape}"), 0
    truly = before.is_true and after.is_true and not before.is_float
    left, right = (before.data, after.data) if truly else (before.residues(), after.residues())
    unequal = np.asarray(left != right)
    if not unequal.any():
        return FieldOutput(name, "equal"), int(unequal.size)
    index = tuple(int(place) for place in np.argwhere(unequal)[0])
    found = int(unequal.sum())
    reason = f"{found} of {unequal.size} elements differ over the field, the first at {list(index)}"
    values = [each[index].item() if truly else int(each[index]) for each in (left, right)]
    return FieldOutput(name, "differs", reason, index, *values), 0
