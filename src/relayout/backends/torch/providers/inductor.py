"""Groups without a kernel of a library, as kernels that Inductor writes."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from relayout.backends.torch.program.call import Lowering
from relayout.backends.torch.program.draft import WEIGHTS, ModuleDraft
from relayout.backends.torch.program.program import EAGER
from relayout.backends.torch.program.scalars import literal
from relayout.backends.torch.program.scope import Scope
from relayout.backends.torch.program.statements import indented
from relayout.backends.torch.providers.conv_form import ConvForm
from relayout.backends.torch.providers.library_group import LibraryGroup
from relayout.backends.torch.providers.window import known_shape
from relayout.backends.torch.providers.work import borders_of
from relayout.backends.torch.runtime.inductor import InductorKernel
from relayout.graph.read import constant_of, is_op, shape_of

VIEWS = ("Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity")
"""Operators that move no data: they only change strides."""

TENSORS = frozenset(
    (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.BOOL)
)
"""Types of elements that stay on the device; whole numbers may be lengths, which Python holds."""


@dataclass(frozen=True, slots=True)
class ConvKernel(ConvForm):
    """A convolution of the library, and one kernel for all that follows it."""

    @property
    def kind(self) -> str:
        return "conv and kernel"

    def write(self, _nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        group = self.group
        operands = ["y"]
        given = [scope.let("convolved", self.convolved(scope, "None"))]
        total = "y"
        if group.bias is not None:
            operands.append("bias")
            given.append(scope.tensor(group.bias))
            total += " + bias.reshape(-1, 1, 1)"
        other = self.residual(scope)
        if other is not None:
            operands.append("residual")
            given.append(other)
            total += " + residual"
        body = f"    return {_activated(total, group)}"
        kernel = _kernel_for("finish", ", ".join(operands), body, [group.output], scope.draft)
        scope.bind(group.output, f"{kernel}({', '.join(given)})")


def _kernel_for(
    hint: str, parameters: str, body: str, values: Sequence[ir.Value], draft: ModuleDraft
) -> str:
    """The kernel of a function, given by its parameters and body; the same one is made once.

    Where the lengths of all values are known it is compiled for these alone, which takes a fraction
    of the time, and is faster. Functions for other lengths are others, by what is written in them.
    """
    shapes = [known_shape(value) for value in values]
    options = ""
    if None not in shapes:
        texts = dict.fromkeys(map(str, shapes))
        options, body = ", dynamic=False", f'    """For {", ".join(texts)}."""\n{body}'
    name = draft.function(hint, f"def NAME({parameters}):\n{body}")
    made = f"{draft.helper(InductorKernel)}({name}{options})"
    known = [f"{WEIGHTS}.{own}" for own, text in draft.prepared if text == made]
    return known[0] if known else draft.prepare("kernel", made)


def _activated(total: str, group: LibraryGroup) -> str:
    activation = group.activation
    if activation.curve is not None:
        return f"F.{activation.curve}({total})"
    if activation.is_none:
        return total
    if activation.is_relu:
        return f"F.relu({total})"
    return f"F.hardtanh({total}, {literal(activation.low)}, {literal(activation.high)})"


@dataclass(frozen=True, slots=True)
class KernelRun:
    """Nodes of a group as one function, compiled as a whole; equal groups share it."""

    operands: tuple[ir.Value, ...]
    results: tuple[ir.Value, ...]
    name: str = "kernel"

    def write(self, nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        inside = Scope(scope.draft, scope.opsets)
        parameters = []
        for value in self.operands:
            parameters.append(scope.draft.names.fresh(value.name or "x"))
            inside.forms[value] = parameters[-1]
        EAGER.write(nodes, inside)
        _bind_kernel(inside, parameters, self.operands, self.results, scope)


def _bind_kernel(
    inside: Scope,
    parameters: Sequence[str],
    operands: Sequence[ir.Value],
    results: Sequence[ir.Value],
    scope: Scope,
) -> None:
    """Let values be the results of a function, compiled as a kernel, that is written inside."""
    body = "\n".join(indented(inside.finished(inside.returned(results))))
    heads, plain, weights = _plain(parameters, body)
    kernel = _kernel_for("group", heads, plain, [*operands, *results], scope.draft)
    given = [scope.tensor(value) for value in operands]
    made = scope.let("results", f"{kernel}({', '.join((*given, *weights))})")
    for index, value in enumerate(results):
        scope.bind(value, f"{made}[{index}]")


@dataclass(frozen=True, slots=True)
class SpeltAttention:
    """An attention as products and a Softmax, which Inductor joins with what is added to scores."""

    lowering: Lowering
    name: str = "spelt out"

    def write(self, nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        (node,) = nodes
        inside = Scope(scope.draft, scope.opsets)
        operands, results = borders_of(nodes)
        parameters = []
        for value in operands:
            parameters.append(scope.draft.names.fresh(value.name or "x"))
            inside.forms[value] = parameters[-1]
        inside.lower(node, self.lowering)
        _bind_kernel(inside, parameters, operands, results, scope)


def _plain(parameters: Sequence[str], body: str) -> tuple[str, str, list[str]]:
    """Parameters and body of a function in names of its own, and the weights it reads.

    A compiled function gets each weight by itself.
    """
    weights = list(dict.fromkeys(re.findall(rf"\b{WEIGHTS}\.\w+", body)))
    own = {text: f"own_{number}" for number, text in enumerate(weights)}
    text = re.sub(rf"\b{WEIGHTS}\.\w+", lambda found: own[found[0]], body)
    tree = ast.parse(f"def group():\n{text}")
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    written = [node.id for node in named if isinstance(node.ctx, ast.Store)]
    renamed = dict.fromkeys((*parameters, *written))
    names = {name: f"v{number}" for number, name in enumerate(renamed)}
    for node in named:
        node.id = names.get(node.id, node.id)
    heads = ", ".join((*(names[each] for each in parameters), *own.values()))
    lines = ast.unparse(tree).splitlines()[1:]
    return heads, "\n".join(lines), weights


def can_be_kernel(nodes: Sequence[ir.Node]) -> bool:
    """Whether some nodes compute enough to be worth a kernel, on tensors of known ranks."""
    if sum(not is_op(node, *VIEWS) for node in nodes) < 2:
        return False
    values = [value for node in nodes for value in (*node.inputs, *node.outputs)]
    return all(value is None or constant_of(value) is not None or _fits(value) for value in values)


def _fits(value: ir.Value) -> bool:
    return value.dtype in TENSORS and shape_of(value) is not None
