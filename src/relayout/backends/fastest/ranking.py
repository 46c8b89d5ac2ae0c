"""What was measured of the ways to run a model, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class RunWay:
    """One way to run a model: a backend, and what it makes of the model."""

    backend: str
    name: str

    def __str__(self) -> str:
        return f"{self.backend}, {self.name}"


@dataclass(frozen=True, slots=True)
class TimedWay:
    """How long one way takes, in milliseconds: the median, and the quickest and slowest tenth."""

    way: RunWay
    median: float = 0.0
    low: float = 0.0
    high: float = 0.0
    ratio: tuple[float, float, float] | None = None
    """How many times as fast it is as the line: the median, and an interval that holds it."""
    refusal: str = ""
    """Why it cannot be taken."""
    verdict: str = ""
    """What came of comparing its numbers with the given model's."""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "way": str(self.way), "backend": self.way.backend}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TimedWay:
        backend, _, name = data["way"].partition(", ")
        others = {key: value for key, value in data.items() if key not in {"way", "backend"}}
        ratio = None if others["ratio"] is None else tuple(others["ratio"])
        return cls(RunWay(backend, name), **{**others, "ratio": ratio})


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ways to run a model on some threads, the fastest first and those refused last."""

    ways: tuple[TimedWay, ...]
    threads: int
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Of the inputs that they were timed on; none where they were not timed."""
    line: str = ""
    """The way that all are compared with: the given model in ONNX Runtime, if that runs it."""
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: str = ""
    is_noisy: bool = False
    """Whether times spread so much that they are taken again the next time."""
    reason: str = ""
    """Why nothing was timed."""

    @property
    def open(self) -> tuple[TimedWay, ...]:
        """Those that can be taken."""
        return tuple(each for each in self.ways if not each.refusal)

    def with_way(self, changed: TimedWay) -> Ranking:
        """One of the ways replaced; what is refused goes to the end."""
        ways = tuple(changed if each.way == changed.way else each for each in self.ways)
        return replace(self, ways=tuple(sorted(ways, key=lambda each: bool(each.refusal))))

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "ways": [each.to_json() for each in self.ways]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Ranking:
        ways = tuple(map(TimedWay.from_json, data["ways"]))
        shapes = {name: tuple(shape) for name, shape in data["shapes"].items()}
        return cls(**{**data, "ways": ways, "shapes": shapes})
