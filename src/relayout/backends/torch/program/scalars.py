"""Small values that stay Python numbers in a module: shapes and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import onnx_ir as ir

HUGE = 1e30

Number: TypeAlias = int | float | bool


@dataclass(frozen=True, slots=True)
class Scalar:
    """A Python expression for a number, and the number if it is known now."""

    text: str
    value: Number | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the expression may be repeated and needs no brackets."""
        return self.value is not None or self.text.isidentifier()


def literal(value: Number) -> str:
    """A number as Python text; brackets separate a sign from what comes before it."""
    if isinstance(value, float) and not math.isfinite(value):
        sign = "-" if value < 0 else ""
        return "math.nan" if math.isnan(value) else f"{sign}math.inf"
    return repr(value)


def shortest(element: Any) -> Number:
    """An element of an array with the digits that distinguish it from others of its type.

    Huge ones keep all digits: rounded up, the largest number of a type would be beyond it.
    """
    value: Number = element.item()
    is_short = isinstance(value, float) and abs(value) < HUGE
    return float(str(element)) if is_short else value


def known(value: Number) -> Scalar:
    return Scalar(literal(value), value)


@dataclass(frozen=True, slots=True)
class Host:
    """A value of rank 0 or 1 as Python numbers."""

    items: tuple[Scalar, ...]
    rank: int
    dtype: ir.DataType

    @property
    def values(self) -> tuple[Number, ...] | None:
        """The numbers, if all of them are known now."""
        found = tuple(item.value for item in self.items if item.value is not None)
        return found if len(found) == len(self.items) else None

    @property
    def text(self) -> str:
        """A Python number, or a list of them."""
        if self.rank == 0:
            return self.items[0].text
        return f"[{', '.join(item.text for item in self.items)}]"


def host_of(array: Any, dtype: ir.DataType) -> Host:
    """A known array of rank 0 or 1."""
    return Host(tuple(known(shortest(item)) for item in array.reshape(-1)), array.ndim, dtype)


def bracketed(item: Scalar) -> str:
    is_signed = item.value is not None and item.text.startswith("-")
    return item.text if item.is_plain and not is_signed else f"({item.text})"


def combine(
    form: str, operands: Iterable[Scalar], compute: Callable[..., Number] | None = None
) -> Scalar:
    """An expression over scalars; computed now where all of them are known."""
    given = tuple(operands)
    values = [item.value for item in given]
    if compute is not None and all(value is not None for value in values):
        return known(compute(*values))
    return Scalar(form.format(*(bracketed(item) for item in given)))
