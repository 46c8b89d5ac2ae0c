"""A function while it is being written: which expression each value of the graph has in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import onnx_ir as ir

from relayout.backends.torch.program.call import (
    Call,
    Lowering,
    PythonExpression,
    Results,
    Several,
)
from relayout.backends.torch.program.draft import ModuleDraft
from relayout.backends.torch.program.scalars import Host, Scalar, host_of
from relayout.backends.torch.program.statements import Statement, finished, indented
from relayout.errors import RelayoutError, quoted
from relayout.graph.read import constant_of, view_of
from relayout.layout.permutation import AxisError

MOST_NUMBERS = 64
"""Constants of more elements than this are tensors and never Python numbers."""

Form: TypeAlias = str | Host
"""The expression of a tensor, or the Python numbers that replace a small one."""


def tuple_text(items: Sequence[str]) -> str:
    """A tuple of expressions, without brackets where Python needs none."""
    return f"{items[0]}," if len(items) == 1 else ", ".join(items) or "()"


@dataclass
class Scope:
    """One function of the module; the bodies of control flow are functions inside others."""

    draft: ModuleDraft
    opsets: Mapping[str, int]
    parent: Scope | None = None
    statements: list[Statement] = field(default_factory=list)
    forms: dict[ir.Value, Form] = field(default_factory=dict)
    copies: dict[tuple[ir.Value, str], str] = field(default_factory=dict)
    """Names of copies in another memory format, by the tensor and the call that copies it."""

    def inner(self) -> Scope:
        """The scope of a function inside this one."""
        return Scope(self.draft, self.opsets, self)

    # -- reading ---------------------------------------------------------------------------------

    def tensor(self, value: ir.Value) -> str:
        """The expression of a value as a tensor (or a sequence of tensors, as a list)."""
        form = self._form(value)
        if isinstance(form, str):
            return form
        tensor = constant_of(value)
        if form is None and tensor is not None:
            return self.draft.weight(tensor, value.name or "constant")
        if form is None:
            raise RelayoutError(f"value {quoted(value.name)} is read before it is computed")
        text = self._tensor_of(form, value.name or "numbers")
        if form.values is None:
            self.forms[value] = text
        return text

    def numbers(self, value: ir.Value) -> Host | None:
        """The value as Python numbers, if it is kept as such."""
        form = self._form(value)
        if isinstance(form, Host):
            return form
        tensor = constant_of(value) if form is None else None
        if tensor is None or tensor.dtype == ir.DataType.STRING:
            return None
        if len(tensor.shape) > 1 or tensor.size > MOST_NUMBERS:
            return None
        fitting = self.draft.precision.fitted(tensor.numpy(), tensor.dtype)
        return host_of(fitting, tensor.dtype)

    def list_text(self, value: ir.Value) -> str:
        """The value as a Python number or list of numbers, read from the tensor if need be."""
        numbers = self.numbers(value)
        return f"{self.tensor(value)}.tolist()" if numbers is None else numbers.text

    # -- writing ---------------------------------------------------------------------------------

    def bind(self, value: ir.Value, result: PythonExpression) -> None:
        """Let a value of the graph be the result of an expression."""
        if isinstance(result, Host):
            hint = value.name or "n"
            items = tuple(self.plain(item, hint) for item in result.items)
            self.forms[value] = Host(items, result.rank, result.dtype)
        elif result.replace(".", "_").isidentifier():
            self.forms[value] = result
        else:
            self.forms[value] = self.let(value.name or "v", result)

    def let(self, hint: str, expression: str) -> str:
        """A new name for an expression."""
        name = self.draft.names.fresh(hint)
        self.statements.append(Statement(f"{name} = {expression}"))
        return name

    def copied(self, value: ir.Value, hint: str, call: str) -> str:
        """A name for a tensor after a call that only changes its memory format; written once."""
        key = (value, call)
        if key not in self.copies:
            self.copies[key] = self.let(hint, f"{self.tensor(value)}.{call}")
        return self.copies[key]

    def plain(self, item: Scalar, hint: str = "n") -> Scalar:
        """The number under a name of its own, unless its expression is as short as a name."""
        if item.is_plain:
            return item
        name = self.draft.names.fresh(hint)
        self.statements.append(Statement(f"{name} = {item.text}", is_scalar=True))
        return Scalar(name)

    def state(self, text: str) -> None:
        """Add a statement."""
        self.statements.append(Statement(text))

    def lower(self, node: ir.Node, lowering: Lowering | None = None) -> None:
        """Write what a node does by a lowering, that of its operator unless another is given."""
        view = view_of(node, self.opsets)
        domain = "" if node.domain == "ai.onnx" else node.domain
        lowering = lowering or self.draft.lowerings.get((domain, node.op_type))
        if lowering is None:
            raise RelayoutError(f"torch has no lowering of {node.op_type}")
        try:
            self._assign(node.outputs, lowering(Call(view, self)))
        except AxisError as error:
            raise RelayoutError(f"{node.op_type} is not valid: {error}") from None

    def define(self, hint: str, graph: ir.Graph, forms: Sequence[Form | None] = ()) -> str:
        """Define a function that runs a body of control flow, and give its name.

        Its parameters are the inputs of the body. `forms` states which of them are Python numbers:
        a form there replaces the parameter of that position.
        """
        name = self.draft.names.fresh(hint)
        inside = self.inner()
        parameters = []
        for index, value in enumerate(graph.inputs):
            parameter = self.draft.names.fresh(value.name or "v")
            parameters.append(parameter)
            form = forms[index] if index < len(forms) else None
            inside.forms[value] = (
                Host((Scalar(parameter),), 0, form.dtype) if isinstance(form, Host) else parameter
            )
        for node in graph:
            inside.lower(node)
        returns = inside.returned(graph.outputs)
        lines = [f"def {name}({', '.join(parameters)}):", *indented(inside.finished(returns))]
        self.state("\n".join(lines))
        return name

    def returned(self, outputs: Iterable[ir.Value]) -> str:
        """What a function returns for these values: always a tuple."""
        return tuple_text([self.tensor(value) for value in outputs])

    def finished(self, returns: str) -> list[str]:
        return finished(self.statements, returns)

    # -- details ---------------------------------------------------------------------------------

    def _form(self, value: ir.Value) -> Form | None:
        scope: Scope | None = self
        while scope is not None:
            if value in scope.forms:
                return scope.forms[value]
            scope = scope.parent
        return None

    def _tensor_of(self, host: Host, hint: str) -> str:
        if host.values is not None:
            return self.draft.constant(host)
        dtype = self.draft.precision.name(host.dtype)
        return self.let(hint, f"torch.tensor({host.text}, dtype=torch.{dtype}, device=w.device)")

    def _assign(self, outputs: Sequence[ir.Value], results: Results) -> None:
        if isinstance(results, Several):
            self._unpack(outputs, results)
            return
        given = results if isinstance(results, tuple) else (results,)
        for value, result in zip(outputs, given, strict=False):
            self.bind(value, result)

    def _unpack(self, outputs: Sequence[ir.Value], results: Several) -> None:
        names = []
        for index in range(results.count):
            value = outputs[index] if index < len(outputs) else None
            if value is None or not (value.uses() or value.is_graph_output()):
                names.append("_")
                continue
            name = self.draft.names.fresh(value.name or "v")
            self.forms[value] = name
            names.append(name)
        self.state(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {results.text}")
