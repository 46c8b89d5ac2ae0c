"""Axes and other lists of whole numbers, whether attributes or operands."""

from __future__ import annotations

from collections.abc import Sequence

from relayout.backends.torch.program.call import Call
from relayout.graph.read import Parameter


def parameter(call: Call, name: str, index: int) -> tuple[int, ...] | None:
    """The numbers of a parameter, if it is given and known now."""
    attribute = call.ints(name)
    if attribute is not None:
        return attribute
    return call.known_ints(index) if is_operand(call, name, index) else None


def is_operand(call: Call, name: str, index: int) -> bool:
    """Whether a parameter is given as an operand."""
    return call.has(index) and Parameter(name, index).is_operand(call.view)


def parameter_text(call: Call, name: str, index: int, default: str = "None") -> str:
    """A parameter as a Python list, read from a tensor if need be."""
    attribute = call.ints(name)
    if attribute is not None:
        return repr(list(attribute))
    return call.list_text(index) if is_operand(call, name, index) else default


def normal(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis


def short(values: Sequence[int]) -> str:
    """One number where all are the same, else a tuple."""
    return repr(values[0]) if len(set(values)) == 1 else repr(tuple(values))
