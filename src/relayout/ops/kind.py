"""Kinds of operators, by what may share a kernel with them."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """How the elements of a result depend on the elements of the operands.

    Kinds combine by `max`. The numbers are those of TVM, where 5 and 6 have no use.
    """

    ELEMENTWISE = 0
    """The element of the same place."""
    BROADCAST = 1
    """The axes of the operand appear in the result in the same order."""
    INJECTIVE = 2
    """One element of the operand, wherever it is."""
    REDUCTION = 3
    """All elements along some axes, in any order."""
    COMPLEX = 4
    """More than that; elementwise operators may follow in the same kernel."""
    TUPLE = 7
    """Nothing is computed: several tensors are named together."""
    OPAQUE = 8
    """Nothing shares a kernel with it."""
