"""What a .tflite file holds, as plain values: tensors, and builtins in the order of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FlatData: TypeAlias = npt.NDArray[Any]
FlatShape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Quantisation:
    """The steps that bytes stand for; one for all elements, or one for each entry of an axis."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int = 0


@dataclass(eq=False, slots=True)
class FlatTensor:
    """A tensor of known shape; a constant if it has data."""

    name: str
    shape: FlatShape
    dtype: np.dtype[Any]
    data: FlatData | None = None
    steps: Quantisation | None = None
    open_axes: frozenset[int] = frozenset()
    """The axes whose lengths callers may change."""

    @property
    def rank(self) -> int:
        return len(self.shape)

    def rename(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        kind = "constant" if self.data is not None else "tensor"
        return f"<{kind} {self.name} {self.dtype}{list(self.shape)}>"


@dataclass(eq=False, slots=True)
class FlatOperator:
    """One builtin, by the name and the options that the schema has for it."""

    builtin: str
    inputs: tuple[FlatTensor | None, ...]
    outputs: tuple[FlatTensor, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class FlatGraph:
    """Operators in an order in which they can run."""

    inputs: tuple[FlatTensor, ...] = ()
    outputs: tuple[FlatTensor, ...] = ()
    operators: list[FlatOperator] = field(default_factory=list)

    def count(self, builtin: str) -> int:
        return sum(operator.builtin == builtin for operator in self.operators)

    def consumers(self) -> dict[FlatTensor, list[FlatOperator]]:
        """The operators that read each tensor, once for each operand."""
        found: dict[FlatTensor, list[FlatOperator]] = {}
        for operator in self.operators:
            for tensor in operator.inputs:
                if tensor is not None:
                    found.setdefault(tensor, []).append(operator)
        return found

    def remove_dead(self) -> None:
        """Remove operators whose results nothing reads."""
        needed = set(self.outputs)
        kept = []
        for operator in reversed(self.operators):
            if needed.isdisjoint(operator.outputs):
                continue
            needed.update(tensor for tensor in operator.inputs if tensor is not None)
            kept.append(operator)
        self.operators = kept[::-1]
