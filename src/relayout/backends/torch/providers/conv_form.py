"""What all ways to run a convolution with the rest of its group have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import onnx_ir as ir

from relayout.backends.torch.program.scope import Scope
from relayout.backends.torch.providers.library_group import LibraryGroup
from relayout.backends.torch.providers.orders import FORMATS, LAST, Order, Stored, in_order
from relayout.backends.torch.providers.window import Sliding


@dataclass(frozen=True, slots=True)
class ConvForm(ABC):
    """A convolution with the rest of its group, from tensors in one order to one in another."""

    group: LibraryGroup
    window: Sliding
    reads: Order = LAST
    writes: Order = LAST
    """The order of the result, and of a residual."""
    stored: Stored = field(default_factory=dict, repr=False, compare=False)

    @property
    @abstractmethod
    def kind(self) -> str:
        """What it is called, whatever the orders are."""

    @abstractmethod
    def write(self, nodes: tuple[ir.Node, ...], scope: Scope) -> None: ...

    @property
    def name(self) -> str:
        if self.reads != self.writes:
            return f"{self.kind} {self.reads} to {self.writes}"
        return self.kind if self.reads == LAST else f"{self.kind} {self.reads}"

    @property
    def arguments(self) -> str:
        """Strides, padding, dilations and groups, as torch takes them."""
        window = self.window
        padding = list(window.padding or (0, 0))
        return f"{list(window.strides)}, {padding}, {list(window.dilations)}, {window.groups}"

    def source(self, scope: Scope) -> str:
        return in_order(self.group.source, self.reads, self.stored, scope)

    def residual(self, scope: Scope) -> str | None:
        other = self.group.residual
        return None if other is None else in_order(other, self.writes, self.stored, scope)

    def weight(self, scope: Scope) -> str:
        return scope.draft.prepare(
            f"{self.group.output.name}_weight",
            f"{scope.tensor(self.group.weight)}.contiguous({FORMATS[self.writes]})",
        )

    def convolved(self, scope: Scope, bias: str) -> str:
        """The convolution of torch alone."""
        operands = f"{self.source(scope)}, {self.weight(scope)}, {bias}"
        return f"F.conv2d({operands}, {self.arguments})"
