"""A node as its lowering sees it: facts about it, and expressions of its operands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import onnx_ir as ir

from relayout.backends.torch.program.scalars import Host, Number, literal, shortest
from relayout.errors import RelayoutError, quoted
from relayout.graph.read import NodeView, Shape
from relayout.layout.transport import Array

if TYPE_CHECKING:
    from relayout.backends.torch.program.draft import Helper
    from relayout.backends.torch.program.scope import Scope


@dataclass(frozen=True, slots=True)
class Several:
    """An expression whose value has one part for each result."""

    text: str
    count: int


PythonExpression: TypeAlias = str | Host
Results: TypeAlias = PythonExpression | tuple[PythonExpression, ...] | Several


@dataclass(frozen=True, slots=True)
class Call:
    """What a lowering is given; it returns expressions of the results."""

    view: NodeView
    scope: Scope

    @property
    def op_type(self) -> str:
        return self.view.op_type

    @property
    def version(self) -> int:
        return self.view.version

    @property
    def arity(self) -> int:
        return self.view.arity

    @property
    def results(self) -> int:
        return self.view.results

    # -- operands --------------------------------------------------------------------------------

    def has(self, index: int) -> bool:
        return self.view.has(index)

    def value(self, index: int) -> ir.Value:
        value = self.view.node.inputs[index] if self.has(index) else None
        if value is None:
            raise self.refusal(f"has no operand {index}")
        return value

    def tensor(self, index: int) -> str:
        """The expression of an operand as a tensor."""
        return self.scope.tensor(self.value(index))

    def optional(self, index: int) -> str:
        """The expression of an operand as a tensor, or `None` where it is left out."""
        return self.tensor(index) if self.has(index) else "None"

    @property
    def tensors(self) -> list[str]:
        """All operands as tensors."""
        return [self.tensor(index) for index in range(self.arity)]

    def numbers(self, index: int) -> Host | None:
        """An operand as Python numbers, if it is kept as such."""
        return self.scope.numbers(self.value(index)) if self.has(index) else None

    def known(self, index: int) -> tuple[Number, ...] | None:
        """The numbers of a small operand if they are known now."""
        numbers = self.numbers(index)
        return None if numbers is None else numbers.values

    def known_ints(self, index: int) -> tuple[int, ...] | None:
        values = self.known(index)
        return None if values is None else tuple(int(value) for value in values)

    def list_text(self, index: int) -> str:
        """An operand as a Python number or list of numbers, read from the tensor if need be."""
        return self.scope.list_text(self.value(index))

    def number_text(self, index: int) -> str:
        """An operand of one element as a Python number."""
        numbers = self.numbers(index)
        return f"{self.tensor(index)}.item()" if numbers is None else numbers.items[0].text

    def constant(self, index: int) -> Array | None:
        return self.view.constant(index)

    def either(self, index: int, others_rank: int | None) -> str:
        """An operand as a number where it has one element and cannot raise the rank, else a tensor.

        `others_rank` is the rank the result has without it.
        """
        array = self.view.constant(index)
        if array is None or array.size != 1 or array.dtype.kind not in "fiub":
            return self.tensor(index)
        if array.ndim and (others_rank is None or array.ndim > others_rank):
            return self.tensor(index)
        dtype = self.dtype(index) or ir.DataType.UNDEFINED
        fitting = self.scope.draft.precision.fitted(array, dtype)
        return literal(shortest(fitting.reshape(-1)[0]))

    def rank(self, index: int) -> int | None:
        return self.view.rank(index)

    def shape(self, index: int) -> Shape | None:
        return self.view.shape(index)

    def dtype(self, index: int) -> ir.DataType | None:
        return self.view.dtype(index)

    def is_read(self, index: int) -> bool:
        """Whether anything reads a result."""
        return self.view.uses_result(index)

    # -- attributes ------------------------------------------------------------------------------

    def integer(self, name: str, default: int) -> int:
        return self.view.integer(name, default)

    def real(self, name: str, default: float) -> float:
        """A number with the fewest digits that distinguish it from others of its type."""
        attribute = self.view.node.attributes.get(name)
        return default if attribute is None else self.fitted(attribute.as_float())

    def fitted(self, value: float) -> float:
        """A number of type float32 that the type computed in can hold."""
        array = self.scope.draft.precision.fitted(np.array([value], "f4"), ir.DataType.FLOAT)
        return float(shortest(array[0]))

    def string(self, name: str, default: str) -> str:
        return self.view.string(name, default)

    def ints(self, name: str) -> tuple[int, ...] | None:
        return self.view.ints(name)

    def attribute_array(self, name: str) -> Array:
        """The elements of an attribute that is a tensor."""
        attribute = self.view.node.attributes.get(name)
        if attribute is None:
            raise self.refusal(f"has no attribute {name!r}")
        array: Array = attribute.as_tensor().numpy()
        return array

    def graph(self, name: str) -> ir.Graph:
        return self.view.node.attributes[name].as_graph()

    # -- writing ---------------------------------------------------------------------------------

    def table(self, array: Array, hint: str) -> str:
        """The expression of a weight that the model has in another form."""
        return self.scope.draft.weight(ir.tensor(array), hint)

    def helper(self, helper: Helper, *arguments: object, **named: object) -> str:
        """A call of a helper, which the module will contain."""
        parts = [str(argument) for argument in arguments]
        parts += [f"{name}={value}" for name, value in named.items()]
        return f"{self.scope.draft.helper(helper)}({', '.join(parts)})"

    def let(self, expression: str, hint: str | None = None) -> str:
        """A new name for an expression; a name stays as it is."""
        if expression.replace(".", "_").isidentifier():
            return expression
        return self.scope.let(hint or self.view.node.outputs[0].name or "v", expression)

    def torch_dtype(self, dtype: ir.DataType | int) -> str:
        """Torch's name of an element type of the model."""
        return f"torch.{self.scope.draft.precision.name(ir.DataType(dtype))}"

    def refusal(self, reason: str) -> RelayoutError:
        name = self.view.node.name
        node = f"{self.op_type} node {quoted(name)}" if name else self.op_type
        return RelayoutError(f"torch cannot run it: {node} {reason}")


Lowering: TypeAlias = Callable[[Call], Results]
"""Writes in torch what a node does."""
