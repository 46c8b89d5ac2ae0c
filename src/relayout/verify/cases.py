"""Finds inputs that the first model accepts."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from relayout.verify.bindings import Binding, binding_groups, ports_to_try
from relayout.verify.equations import SolvedLengths
from relayout.verify.inputs import LADDERS, Draw, draw_feeds, same_feeds
from relayout.verify.ranges import Values
from relayout.verify.runtimes import ExhaustedError, RefusedError
from relayout.verify.shapes.reading import shapes_of

SMALLEST = 2
LONGEST_SEARCH = 60.0
"""Seconds in which lengths that the model takes are searched for."""

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import onnx

    from relayout.verify.interface import Interface, Port
    from relayout.verify.runtimes import Run
    from relayout.verify.verdict import NumericOptions


@dataclass(frozen=True)
class Case:
    """One set of inputs and what the first model makes of it."""

    binding: Binding
    draw: Draw
    feeds: dict[str, Any]
    results: list[Any]

    @property
    def hollow(self) -> bool:
        """Whether there is no element to compare."""
        return not any(has_elements(result) for result in self.results)


@dataclass(frozen=True)
class _Reading:
    """The lengths that follow from others, and the values that inputs may have."""

    lengths: SolvedLengths = field(default_factory=SolvedLengths)
    values: Values = field(default_factory=Values)


@dataclass(frozen=True)
class CaseFinder:
    original: Run
    interface: Interface
    options: NumericOptions

    model: onnx.ModelProto | None = None
    """What lengths and values are read off, if it is at hand."""
    once: bool = False
    """Whether one case is enough."""
    started: float = field(default_factory=time.monotonic)

    def find(self) -> list[Case]:
        """The cases of one binding of each group, as far as the model accepts one of it."""
        tried = 0
        refusal = RefusedError("there is nothing to try")
        for ports in ports_to_try(self.interface.required, self.options):
            for found in self._readings(ports):
                groups = binding_groups(ports, found.lengths)
                tried += sum(map(len, groups))
                try:
                    return self._of_groups(ports, groups, found)
                except RefusedError as error:
                    refusal = error
        raise RefusedError(f"{refusal} (the last of {tried} shapes)" if tried > 1 else str(refusal))

    def _readings(self, ports: Sequence[Port]) -> list[_Reading]:
        """What the model says of its inputs; then nothing, should it have been misread."""
        if self.model is None:
            return [_Reading()]
        graph = self.model.graph
        shapes = shapes_of(self.model, ports)
        everything = (*self.interface.required, *self.interface.optional)
        lengths = SolvedLengths.of(shapes.equations)
        read = _Reading(lengths, Values.of(graph, shapes, everything, lengths))
        return [read, _Reading()] if read.lengths.known or read.lengths.solutions else [read]

    def _of_groups(
        self, ports: Sequence[Port], groups: Iterable[Sequence[Binding]], found: _Reading
    ) -> list[Case]:
        cases: list[Case] = []
        refusal = RefusedError("there is nothing to try")
        for group in groups:
            if self.once and cases:
                break
            try:
                is_first = not cases
                cases += self._of_group(ports, group, found, is_first=is_first)
            except RefusedError as error:
                refusal = error
            except ExhaustedError:
                if not cases:
                    raise
        if not cases:
            raise refusal
        return cases

    def _of_group(
        self, ports: Sequence[Port], group: Sequence[Binding], found: _Reading, *, is_first: bool
    ) -> list[Case]:
        """The cases of the first binding that runs, preferably one with elements to compare."""
        hollow: list[Case] = []
        refusal = RefusedError("there is nothing to try")
        for binding in group:
            if time.monotonic() - self.started > LONGEST_SEARCH:
                raise RefusedError(
                    f"no lengths that the model takes were found in {LONGEST_SEARCH:g} s; "
                    "give them by --dim or --shape"
                )
            try:
                cases = self._of_binding(ports, binding, found, is_first=is_first)
            except RefusedError as error:
                refusal = error
                continue
            if not all(case.hollow for case in cases):
                return cases
            hollow = hollow or cases
        if not hollow:
            raise refusal
        return hollow

    def _of_binding(
        self, ports: Sequence[Port], binding: Binding, found: _Reading, *, is_first: bool
    ) -> list[Case]:
        """One case a ladder; the first ladder must be accepted, a later one may be refused."""
        cases: list[Case] = []
        ladders = LADDERS if is_first or not _is_small(binding) else LADDERS[1:]
        for ladder in reversed(ladders) if self.once else ladders:
            if self.once and cases:
                break
            try:
                case = self._of_ladder(ports, binding, ladder, found)
            except RefusedError:
                if not cases and ladder is ladders[0]:
                    raise
                continue
            if not any(same_feeds(case.feeds, other.feeds) for other in cases):
                cases.append(case)
        return cases

    def _of_ladder(
        self, ports: Sequence[Port], binding: Binding, ladder: Sequence[Draw], found: _Reading
    ) -> Case:
        refused: list[dict[str, Any]] = []
        refusal = RefusedError("there is nothing to try")
        for draw in ladder:
            feeds = draw_feeds(
                self.interface, ports, binding, draw, self.options, values=found.values
            )
            if any(same_feeds(feeds, other) for other in refused):
                continue
            try:
                return Case(binding, draw, feeds, self.original(feeds))
            except RefusedError as error:
                refusal = error
                refused.append(feeds)
        raise refusal


def _is_small(binding: Binding) -> bool:
    """Whether all lengths are 1 or 2, of which one run shows what there is to see."""
    return bool(binding) and max(binding.values()) <= SMALLEST


def has_elements(result: Any) -> bool:
    if isinstance(result, list):
        return any(has_elements(part) for part in result)
    return result is not None and np.size(result) > 0
