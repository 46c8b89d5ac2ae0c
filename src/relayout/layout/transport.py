"""How an operator is restated when its operands are stored in another order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from relayout.layout.blocks import Length
    from relayout.layout.shuffle import StoredOrder

AttributeValue: TypeAlias = int | float | str | Sequence[int] | Sequence[float] | None
"""A changed attribute; None removes it."""

Array: TypeAlias = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Step:
    """One node, of the standard domain, among several that replace an operator."""

    op_type: str
    operands: tuple[int | str | Array, ...]
    """Operands of the restated node by their index, earlier results by name, and constants."""
    result: str = ""
    """What later steps call the result; the last step gives the result of the operator."""
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Changes:
    """What is written differently in the restated node."""

    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    constants: Mapping[int, Array] = field(default_factory=dict)
    """Operands replaced by a new constant: axes, pads, scales and other parameters."""
    unsqueezes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Operands that get axes of length 1, at these positions, after their permutation."""
    reshapes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Operands that get another shape, as Reshape is given one, after their permutation."""
    gathers: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Operands computed at run time whose entries (along axis 0) are read at these positions."""
    lookups: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Operands computed at run time that name axes: entry `a` of the table stands for axis `a`."""
    lengths: Mapping[int, tuple[Length, ...]] = field(default_factory=dict)
    """Operands that are a shape put together at run time from lengths of operand 0."""
    result_gathers: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Results to be read at these positions (along axis 0) to give what the node gave before."""
    result_reshapes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Results that get another shape to have the axes of what the node gave before."""
    op_type: str | None = None
    """The operator that computes the same in this order, where it is another."""
    domain: str | None = None
    """Its domain, where that is another too."""
    operand_order: tuple[int | None, ...] | None = None
    """Where operands change places: the index of the one that comes first, and so on.

    None is an operand that is left out."""
    steps: tuple[Step, ...] = ()
    """The nodes that replace an operator of one result and read its operands changed as above."""
    extra_passes: int = 0
    """How much more often than the node the steps read and write a tensor of the lead's size."""

    @property
    def copies(self) -> bool:
        """Whether the restated node is a Transpose, which the given one was not."""
        return self.op_type == "Transpose"

    @property
    def recomputes(self) -> bool:
        """Whether the numbers may be rounded differently than by the node as it was."""
        return bool(self.steps) or self.op_type == "Einsum"

    def __or__(self, other: Changes) -> Changes:
        return Changes(
            {**self.attributes, **other.attributes},
            {**self.constants, **other.constants},
            {**self.unsqueezes, **other.unsqueezes},
            {**self.reshapes, **other.reshapes},
            {**self.gathers, **other.gathers},
            {**self.lookups, **other.lookups},
            {**self.lengths, **other.lengths},
            {**self.result_gathers, **other.result_gathers},
            {**self.result_reshapes, **other.result_reshapes},
            other.op_type or self.op_type,
            self.domain if other.domain is None else other.domain,
            other.operand_order or self.operand_order,
            other.steps or self.steps,
            max(self.extra_passes, other.extra_passes),
        )


AS_GIVEN = Changes()
"""The changes of a node that stays as it was."""


@dataclass(frozen=True, slots=True)
class Transport:
    """The same operator on permuted tensors.

    The law: if operand `i` is given as `Transpose(x[i], inputs[i])` and the node is changed as
    stated, then result `j` is `Transpose(y[j], outputs[j])`; a shuffle stands for the same entries
    in another order. None means "as it was".
    """

    inputs: tuple[StoredOrder | None, ...]
    outputs: tuple[StoredOrder | None, ...]
    changes: Changes = AS_GIVEN


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an operator cannot run in an order; shown to the user."""

    reason: str
