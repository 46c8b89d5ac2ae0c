"""Sums of products by an equation, which names the axes of every operand and of the result."""

from __future__ import annotations

from string import ascii_lowercase
from typing import TYPE_CHECKING

import onnx_ir as ir

from relayout.layout.equation import Equation
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops.facts import InnerCopies, NumberFacts, OpFacts
from relayout.ops.kernels import KernelFacts, Role
from relayout.ops.kind import Kind
from relayout.ops.rule import OpRule, Orders

if TYPE_CHECKING:
    from relayout.graph.read import NodeView, Shape

EINSUM_SINCE = 12

EINSUM_TYPES = frozenset(
    (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT64)
)
"""Runtimes have kernels of Einsum for these; some have none for shorter or unsigned numbers."""

READS_NOTHING = "a runtime may end on an Einsum in another order where there are no elements"

ROWS, SUMMED, COLUMNS = "xyz"
BATCH = ascii_lowercase[: -len("xyz")]


def equation_of(view: NodeView) -> Equation:
    return Equation.of(view.string("equation", ""))


def einsum(view: NodeView, order: Permutation) -> Transport | Refusal:
    """The letters of a term follow its axes, and the result stays the same."""
    return restated(view, (order, *(None,) * (view.arity - 1)), None)


def restated(view: NodeView, inputs: Orders, result: Permutation | None) -> Transport | Refusal:
    """The equation of an Einsum for every operand and the result in an order of its own."""
    if reads_nothing(view):
        return Refusal(READS_NOTHING)
    return _stated(equation_of(view), inputs, result)


def product_as_einsum(
    view: NodeView, inputs: Orders, result: Permutation | None
) -> Transport | Refusal:
    """A MatMul as an Einsum, whose equation states where the axes are stored."""
    equation = equation_of_product(view)
    if isinstance(equation, Refusal):
        return equation
    answer = _stated(equation, inputs, result)
    if isinstance(answer, Refusal):
        return answer
    changes = answer.changes | Changes(op_type="Einsum")
    return Transport(answer.inputs, answer.outputs, changes)


def equation_of_product(view: NodeView) -> Equation | Refusal:
    """What a MatMul computes, as an equation, where each of its axes is surely not broadcast."""
    left, right = view.shape(0), view.shape(1)
    if view.version < EINSUM_SINCE:
        return Refusal(f"Einsum is an operator from opset {EINSUM_SINCE} on")
    if view.dtype(0) not in EINSUM_TYPES:
        return Refusal("runtimes have no Einsum of this type")
    if left is None or right is None or min(len(left), len(right)) < 2:
        return Refusal("MatMul has an operand of fewer than two axes, or of unknown rank")
    if not _same_batch(left, right):
        return Refusal("MatMul may repeat an operand along a batch axis")
    if reads_nothing(view):
        return Refusal(READS_NOTHING)
    batch = BATCH[: max(len(left), len(right)) - 2]
    first = _last(batch, len(left) - 2) + ROWS + SUMMED
    second = _last(batch, len(right) - 2) + SUMMED + COLUMNS
    return Equation((first, second), batch + ROWS + COLUMNS)


def reads_nothing(view: NodeView) -> bool:
    """Whether an operand surely has no elements; ONNX Runtime divides by lengths of an Einsum."""
    return any(0 in (view.shape(index) or ()) for index in range(view.arity))


def _last(letters: str, count: int) -> str:
    return letters[len(letters) - count :]


def _same_batch(left: Shape, right: Shape) -> bool:
    """Whether the batch axes that both have are surely as long as each other."""
    pairs = zip(reversed(left[:-2]), reversed(right[:-2]), strict=False)
    short_enough = max(len(left), len(right)) - 2 <= len(BATCH)
    return short_enough and all(a is not None and a == b for a, b in pairs)


def _stated(equation: Equation, inputs: Orders, result: Permutation | None) -> Transport | Refusal:
    moved: Equation | None = equation
    for index, order in enumerate(inputs):
        if moved is not None and order is not None:
            moved = moved.with_operand(index, order)
    if moved is not None and result is not None:
        moved = moved.with_result(result)
    if moved is None:
        return Refusal("Einsum's dots name no axes, so those must stay in place")
    return Transport(tuple(inputs), (result,), Changes({"equation": str(moved)}))


def result_as_given(view: NodeView, result: Permutation) -> Permutation | Refusal:
    """Another order of the result is written into the equation when the node is restated."""
    lead = view.rank(0)
    if lead is None or not result.is_identity:
        return Refusal("Einsum gives its result in the order of its equation")
    return Permutation.identity(lead)


FACTS = (
    OpFacts(
        ("Einsum",),
        OpRule(einsum, result_as_given, separate=restated),
        kernel=KernelFacts(Kind.COMPLEX, role=Role.PRODUCT, streamed=(0, 1)),
        numbers=NumberFacts(sums_products=True),
        copies=InnerCopies.EINSUM,
    ),
)
