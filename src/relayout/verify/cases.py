"""Finds inputs that the first model accepts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from relayout.verify.bindings import Binding, binding_groups, ports_to_try
from relayout.verify.inputs import LADDERS, Draw, draw_feeds, same_feeds
from relayout.verify.runtimes import ExhaustedError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
class CaseFinder:
    original: Run
    interface: Interface
    options: NumericOptions

    def find(self) -> list[Case]:
        """The cases of one binding of each group, as far as the model accepts one of it."""
        tried = 0
        refusal = RefusedError("there is nothing to try")
        for ports in ports_to_try(self.interface.required, self.options):
            groups = binding_groups(ports)
            tried += sum(map(len, groups))
            try:
                return self._of_groups(ports, groups)
            except RefusedError as error:
                refusal = error
        raise RefusedError(f"{refusal} (the last of {tried} shapes)" if tried > 1 else str(refusal))

    def _of_groups(self, ports: Sequence[Port], groups: Iterable[Sequence[Binding]]) -> list[Case]:
        cases: list[Case] = []
        refusal = RefusedError("there is nothing to try")
        for group in groups:
            try:
                cases += self._of_group(ports, group)
            except RefusedError as error:
                refusal = error
            except ExhaustedError:
                if not cases:
                    raise
        if not cases:
            raise refusal
        return cases

    def _of_group(self, ports: Sequence[Port], group: Sequence[Binding]) -> list[Case]:
        """The cases of the first binding that runs, preferably one with elements to compare."""
        hollow: list[Case] = []
        refusal = RefusedError("there is nothing to try")
        for binding in group:
            try:
                cases = self._of_binding(ports, binding)
            except RefusedError as error:
                refusal = error
                continue
            if not all(case.hollow for case in cases):
                return cases
            hollow = hollow or cases
        if not hollow:
            raise refusal
        return hollow

    def _of_binding(self, ports: Sequence[Port], binding: Binding) -> list[Case]:
        """One case a ladder; the first ladder must be accepted, a later one may be refused."""
        cases: list[Case] = []
        for ladder in LADDERS:
            try:
                case = self._of_ladder(ports, binding, ladder)
            except RefusedError:
                if not cases:
                    raise
                continue
            if not any(same_feeds(case.feeds, other.feeds) for other in cases):
                cases.append(case)
        return cases

    def _of_ladder(self, ports: Sequence[Port], binding: Binding, ladder: Sequence[Draw]) -> Case:
        refused: list[dict[str, Any]] = []
        refusal = RefusedError("there is nothing to try")
        for draw in ladder:
            feeds = draw_feeds(self.interface, ports, binding, draw, self.options)
            if any(same_feeds(feeds, other) for other in refused):
                continue
            try:
                return Case(binding, draw, feeds, self.original(feeds))
            except RefusedError as error:
                refusal = error
                refused.append(feeds)
        raise refusal


def has_elements(result: Any) -> bool:
    if isinstance(result, list):
        return any(has_elements(part) for part in result)
    return result is not None and np.size(result) > 0
