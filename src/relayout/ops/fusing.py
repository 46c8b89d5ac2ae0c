"""What each operator may share a kernel with."""

from __future__ import annotations

from dataclasses import dataclass

from relayout.graph.read import NodeView, shape_of
from relayout.ops.kernels import KernelFacts
from relayout.ops.kind import Kind
from relayout.ops.registry import facts_in_any_layout


@dataclass(frozen=True, slots=True)
class Fusing:
    """The kind of one node, and which of its operands only parametrise the kernel."""

    kind: Kind
    parameters: tuple[int, ...] = ()
    """Constant operands that only parametrise the operator, as attributes do."""
    opaque_for: str = ""
    """Why nothing shares its kernel: opaque, data_dependent or unknown_op."""


def fuses_as(view: NodeView) -> Fusing:
    """How a node takes part in kernels, as TVM has it."""
    kernel = facts_in_any_layout(view.node).kernel
    if kernel is None:
        return Fusing(Kind.OPAQUE, opaque_for="unknown_op")
    kind = kernel.kind if isinstance(kernel.kind, Kind) else kernel.kind(view)
    parameters = _parameters(view, kernel)
    if kind is not Kind.OPAQUE and _is_data_dependent(view, kernel):
        return Fusing(Kind.OPAQUE, parameters, "data_dependent")
    if kind is Kind.OPAQUE or (not kernel.has_parts and _results_in_use(view) > 1):
        return Fusing(Kind.OPAQUE, parameters, "opaque")
    return Fusing(kind, parameters)


def _parameters(view: NodeView, kernel: KernelFacts) -> tuple[int, ...]:
    """The operands that may parametrise the operator and are constant."""
    places = kernel.parameters or kernel.shaping
    return tuple(place for place in places if view.is_constant(place))


def _is_data_dependent(view: NodeView, kernel: KernelFacts) -> bool:
    """Whether the lengths of a result depend on values known only at run time."""
    shapes = (shape_of(value) for value in view.node.outputs)
    if all(shape is not None and all(isinstance(n, int) for n in shape) for shape in shapes):
        return False
    return is_shaped_at_run_time(view, kernel)


def is_shaped_at_run_time(view: NodeView, kernel: KernelFacts) -> bool:
    """Whether an operand that gives the lengths of a result is known only at run time."""
    return any(view.has(place) and not view.is_constant(place) for place in kernel.shaping)


def _results_in_use(view: NodeView) -> int:
    return sum(view.uses_result(index) for index in range(view.results))
