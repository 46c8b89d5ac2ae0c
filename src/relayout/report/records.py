"""What is reported about a model and a run, as plain data without any graph."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from relayout.report.explanation import Explanation
from relayout.report.prompt import ShortRecord


@dataclass(frozen=True, slots=True)
class PortRecord:
    name: str
    dtype: str
    shape: str


@dataclass(frozen=True, slots=True, repr=False)
class TransposeRecord(ShortRecord):
    """One Transpose on a value that is not a constant."""

    name: str
    tensor: str
    """The value it reads."""
    shape: str
    perm: tuple[int, ...] | None
    bytes_moved: int
    line: str | None
    """The source line it was exported from, as `file:line`."""
    why: Explanation


@dataclass(frozen=True, slots=True)
class Assumed:
    """The lengths that are unknown before the run, and what they count as."""

    names: tuple[str, ...] = ()
    """Those that the model's inputs name, so that the caller can set them."""
    others: int = 0
    length: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    transposes: int
    bytes_moved: int
    nodes: int
    nanoseconds: int = 0
    """What moving data and starting kernels takes by the prices of the target; 0 if not asked."""


@dataclass(frozen=True, slots=True, repr=False)
class ModelRecord(ShortRecord):
    """What `inspect` reports."""

    path: str
    producer: str
    ir_version: int
    opsets: dict[str, int]
    inputs: tuple[PortRecord, ...]
    outputs: tuple[PortRecord, ...]
    figures: Figures
    operators: dict[str, int]
    transposes: tuple[TransposeRecord, ...]
    assumed: Assumed
    notices: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One way in which a model was tried."""

    attempt: str
    transposes: int
    bytes_moved: int
    seconds: float
    verdict: str
    """Why it was kept or dropped."""


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """How long one candidate takes in a runtime."""

    name: str
    milliseconds: float
    """On one thread, by the time on its core."""
    times_as_fast: tuple[float, ...]
    """As the given model: the median of pairs, and the 95 % interval; empty for that model."""
    clock_milliseconds: float = 0.0
    """On all threads, by the clock; 0 where one thread was asked for."""
    clock_times_as_fast: tuple[float, ...] = ()
    refusal: str = ""
    """Why the runtime does not run it."""


@dataclass(frozen=True, slots=True)
class MeasuredRecord:
    """Candidates that took turns in a runtime."""

    runtime: str
    version: str
    threads: int
    models: tuple[MeasuredModel, ...]
    kept: str
    """The name of the one that is delivered."""


@dataclass(frozen=True, slots=True)
class OfferRecord:
    """An option that was tried besides, and what it would leave."""

    option: str
    transposes: int
    bytes_moved: int


@dataclass(frozen=True, slots=True, repr=False)
class RunRecord(ShortRecord):
    """What `optimize` reports."""

    source: str
    output: str | None
    target: str
    before: Figures
    after: Figures
    changed: bool
    applied: dict[str, int]
    left: tuple[TransposeRecord, ...]
    assumed: Assumed
    notices: tuple[str, ...]
    verdict: str
    verified: bool
    optimal: bool
    """Whether it is proved that the choice is least for the variants offered."""
    seconds: dict[str, float]
    minimized: str = ""
    """What was made least: what was asked for, unless a notice reports that it was the other."""
    lacking: tuple[int, int] = (0, 0)
    """Nodes in an order that the target has no kernel for, before and after."""
    constant_bytes: tuple[int, int] = (0, 0)
    """What constants of 1 KB and more take, before and after."""
    attempts: tuple[AttemptRecord, ...] = ()
    offers: tuple[OfferRecord, ...] = ()
    """Options that would leave fewer Transposes, where they were asked for."""
    measured: MeasuredRecord | None = None
    """How long candidates took, where that was asked for."""
    withheld: str = ""
    """Why the given model takes the place of what was made of it, if it does."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
