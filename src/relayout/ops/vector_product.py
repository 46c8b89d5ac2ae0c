"""Products of matrices with a vector, which is the same stored as a row or as a column.

A vector in front of a matrix is multiplied along the rows of the matrix, one after it along the
columns. So a matrix that is stored transposed is read where it lies by exchanging the factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relayout.graph.read import NodeView, Shape
from relayout.layout.blocks import Reshaping, Sizes, product, sizes_of
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops.matmul import PLAIN, TRANSPOSED, Dialect, lead_of_product, matrices_rule
from relayout.ops.rule import LeadRule, OpRule, PullRule, TransportRule

LEFT, RIGHT = 0, 1


@dataclass(frozen=True, slots=True)
class VectorProduct:
    """A node that multiplies matrices with one vector."""

    view: NodeView
    dialect: Dialect
    matrix: int
    """Which factor the matrices are."""
    shape: Shape
    """Their shape, as they are stored in the given model."""

    @classmethod
    def of(cls, view: NodeView, dialect: Dialect) -> VectorProduct | None:
        """None where both factors are matrices, or both are vectors, or that is not known."""
        shapes = [view.shape(slot) for slot in dialect.slots]
        for matrix, shape in enumerate(shapes):
            other = shapes[1 - matrix]
            if shape is not None and other is not None and len(shape) > 1 == len(other):
                return cls(view, dialect, matrix, shape)
        return None

    @property
    def slot(self) -> int:
        return self.dialect.slots[self.matrix]

    @property
    def summed(self) -> int:
        """The axis of the stored matrices along which they are multiplied."""
        is_transposed = self.dialect.given(self.view)[self.matrix].transposed
        return len(self.shape) - (1 if (self.matrix == LEFT) != is_transposed else 2)

    def following(self, order: Permutation) -> Transport | Refusal:
        """The node for matrices in any order.

        Axes that are stored after the one that is summed over become one, by a Reshape, which
        copies nothing.
        """
        written = self.dialect.write(self.view, PLAIN, PLAIN)
        if written is None or not self._is_stated_by_flags():
            return Refusal(f"{self.view.op_type} with a vector is left as it is given")
        inner = order.rank - 1 - order.position(self.summed)
        is_exchanged = self.matrix != (RIGHT if inner else LEFT)
        places = self.dialect.exchanged(self.view) if is_exchanged else None
        if is_exchanged and places is None:
            return Refusal(f"{self.view.op_type} has factors that cannot change places")
        reshaped = self._reshaped(order, inner) if inner > 1 else Changes()
        if isinstance(reshaped, Refusal):
            return reshaped
        inputs: list[Permutation | None] = [None] * self.view.arity
        inputs[self.slot] = None if order.is_identity else order
        result = order.drop({self.summed})
        changes = written | reshaped | Changes(operand_order=places)
        return Transport(tuple(inputs), (None if result.is_identity else result,), changes)

    def pulled(self, result: Permutation) -> Permutation | Refusal:
        if result.rank != len(self.shape) - 1:
            return Refusal(f"{self.view.op_type} multiplies along one axis, which vanishes")
        return result.insert({self.summed})

    def twins(self, order: Permutation) -> list[Transport]:
        """The forms whose result comes out as it does for `order`, with other orders of factors."""
        kept = [axis for axis in order if axis != self.summed]
        orders = [(*kept, self.summed), (*kept[:-1], self.summed, kept[-1])]
        others = [Permutation(axes) for axes in orders if axes != order.axes]
        forms = [self.following(other) for other in others if not other.is_identity]
        return [form for form in forms if isinstance(form, Transport)]

    def _is_stated_by_flags(self) -> bool:
        """Whether the node computes what its flags state: ONNX Runtime misreads transA here."""
        reading = self.dialect.given(self.view)[self.matrix]
        return reading in ((PLAIN,) if self.matrix == LEFT else (PLAIN, TRANSPOSED))

    def _reshaped(self, order: Permutation, inner: int) -> Changes | Refusal:
        stored = order.reorder(sizes_of(self.shape, "matrix"))
        before, after = stored[: -inner - 1], stored[-inner:]
        into = _target(stored, (*stored[:-inner], product(after)))
        back = _target((*before, product(after)), (*before, *after))
        if into is None or back is None or 0 in self.shape:
            return Refusal(f"{self.view.op_type} has lengths that no Reshape could state")
        return Changes(reshapes={self.slot: into}, result_reshapes={0: back})


def product_rule(
    dialect: Dialect,
    *,
    lead: LeadRule = lead_of_product,
    or_else: tuple[TransportRule, PullRule] | None = None,
) -> OpRule:
    """The rule of a product of matrices, of which one may be a vector.

    `or_else` is asked where a product of matrices refuses.
    """
    of_matrices = matrices_rule(dialect, lead=lead, or_else=or_else)

    def transport(view: NodeView, order: Permutation) -> Transport | Refusal:
        found = VectorProduct.of(view, dialect)
        return of_matrices.transport(view, order) if found is None else found.following(order)

    def pull(view: NodeView, result: Permutation) -> Permutation | Refusal:
        found = VectorProduct.of(view, dialect)
        return of_matrices.pull(view, result) if found is None else found.pulled(result)

    def lead_of(view: NodeView) -> int:
        found = VectorProduct.of(view, dialect)
        return of_matrices.lead(view) if found is None else found.slot

    def joint(view: NodeView, operand: int, order: Permutation) -> Sequence[Transport]:
        found = VectorProduct.of(view, dialect)
        if found is None:
            return of_matrices.joint(view, operand, order)
        return found.twins(order) if operand == found.slot else ()

    return OpRule(transport, pull, lead_of, joint)


def _target(source: Sizes, result: Sizes) -> tuple[int, ...] | None:
    as_stored = Permutation.identity(len(source)), Permutation.identity(len(result))
    return Reshaping(source, result).target(*as_stored)
