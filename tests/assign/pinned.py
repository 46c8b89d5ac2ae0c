"""Graphs on which another optimiser pins how many Transposes it leaves."""

from __future__ import annotations

from dataclasses import dataclass

from relayout.ops.measure import Objective
from tests.assign.layouting import laid_out


def perm(digits: str) -> str:
    """A Transpose with this perm, in ONNX text."""
    return f"Transpose<perm=[{','.join(digits)}]>"


OUT, BACK, SWAP = perm("0231"), perm("0312"), perm("021")


@dataclass(frozen=True, slots=True)
class Case:
    left: int
    """How many Transposes the other optimiser leaves."""
    interface: str
    body: str
    initialisers: str = ""
    exact: bool = True

    @property
    def text(self) -> str:
        return f"g {self.interface} <{self.initialisers}> {{ {self.body} }}"


def assert_no_more(case: Case, objective: Objective) -> None:
    _, left = laid_out(case.text, objective, case.exact)
    assert left.transposes <= case.left
