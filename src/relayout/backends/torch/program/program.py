"""What a written module does: a list of steps, each a group of nodes and how it is realised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import onnx_ir as ir

from relayout.backends.torch.program.dtypes import FULL, Precision

if TYPE_CHECKING:
    from relayout.backends.torch.program.scope import Scope


class Realisation(Protocol):
    """Writes the statements that do what a group of nodes does.

    It reads operands from the scope and binds every value of the group that is read outside of it.
    """

    def write(self, nodes: tuple[ir.Node, ...], scope: Scope) -> None: ...


class RunsOutsideTorch:
    """A realisation that calls no operator of torch, so that a call need not enter a mode of it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Eager:
    """One statement a node, as a rule."""

    def write(self, nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        for node in nodes:
            scope.lower(node)


EAGER = Eager()


@dataclass(frozen=True, slots=True)
class ProgramStep:
    """Nodes of the main graph that are done together."""

    nodes: tuple[ir.Node, ...]
    realisation: Realisation = EAGER


@dataclass(frozen=True, slots=True)
class Program:
    """A model, cut into steps in an order in which they can run."""

    model: ir.Model
    steps: tuple[ProgramStep, ...]
    name: str = "model"
    device: str = "cpu"
    precision: Precision = FULL
    dims: Mapping[str, int] = field(default_factory=dict)
    """Lengths of symbols that the program is to be fast with."""
    given: ir.Model | None = None
    """The model before layouts were chosen, where a compiler may be faster with that."""
    is_joined: bool = False
    """Whether Inductor compiles all steps together, and joins what they leave to eager kernels."""
    is_frozen: bool = False
    """Whether Inductor compiles all steps together, with the weights as constants."""


def eager_steps(model: ir.Model) -> tuple[ProgramStep, ...]:
    """Every node by itself."""
    return tuple(ProgramStep((node,)) for node in model.graph)
