"""What callers of backends may set, and what they get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from relayout.verify.verdict import NumericOptions, NumericVerdict


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Where a model is to run, and how it is compiled."""

    device: str = "cpu"
    dtype: str | None = None
    """What float32 is computed in instead: "float16" or "bfloat16"."""
    fix_defaults: bool = True
    tune: bool = True
    dims: Mapping[str, int] | None = None
    """The lengths of symbols."""
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The shapes of inputs, for backends that need to know all lengths."""
    inputs: NumericOptions | None = None
    """Which numbers are compared; None where none are to be."""
    threads: int | None = None
    """How many threads it runs on; None for as many as its runtime takes."""


@dataclass(frozen=True, slots=True)
class Compilation:
    """What became of a model that was to be written by a backend."""

    verdict: NumericVerdict | None
    files: tuple[Path, ...] = ()
    details: Mapping[str, int] = field(default_factory=dict)
    """What the backend has counted in what it wrote."""

    @property
    def accepted(self) -> bool:
        return self.verdict is None or self.verdict.equal
