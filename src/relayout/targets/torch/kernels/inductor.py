"""Groups without a kernel of a library, as kernels that Inductor writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from relayout.graph.read import constant_of, is_op
from relayout.targets.torch.draft import WEIGHTS, Draft
from relayout.targets.torch.kernels.fused import Fused
from relayout.targets.torch.kernels.library import channels_last, conv_text
from relayout.targets.torch.kernels.window import Sliding, known_shape
from relayout.targets.torch.program import EAGER, Step
from relayout.targets.torch.runtime.kernel import Kernel
from relayout.targets.torch.scalars import literal
from relayout.targets.torch.scope import Scope
from relayout.targets.torch.statements import indented

POINTWISE = (
    *("Add", "Sub", "Mul", "Div", "Relu", "Clip", "Sigmoid", "Tanh", "Erf", "Exp", "Sqrt", "Gelu"),
    *("HardSwish", "HardSigmoid", "LeakyRelu", "Elu", "Softplus", "Pow", "Neg", "Reciprocal"),
)
"""Operators that Inductor joins into one kernel, element by element."""


@dataclass(frozen=True, slots=True)
class ConvKernel:
    """A convolution of the library, and one kernel for all that follows it."""

    group: Fused
    window: Sliding
    name: str = "conv and kernel"

    def write(self, _nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        group = self.group
        operands = ["y"]
        given = [scope.let("convolved", conv_text(group, self.window, scope, "None"))]
        total = "y"
        if group.bias is not None:
            operands.append("bias")
            given.append(scope.tensor(group.bias))
            total += " + bias.reshape(-1, 1, 1)"
        if group.residual is not None:
            operands.append("residual")
            given.append(channels_last(group.residual, scope))
            total += " + residual"
        rest = f"({', '.join(operands)}):\n    return {_activated(total, group)}"
        kernel = _kernel_for("finish", rest, scope.draft)
        scope.bind(group.output, f"{kernel}({', '.join(given)})")


def _kernel_for(hint: str, rest: str, draft: Draft) -> str:
    """The kernel of a function, given by its parameters and body; the same one is made once."""
    known = [text for text in draft.functions if text.endswith(rest) and text.startswith("def ")]
    if known:
        name = known[0].removeprefix("def ").removesuffix(rest)
        made = f"{draft.helper(Kernel)}({name})"
        return next(f"{WEIGHTS}.{own}" for own, text in draft.prepared if text == made)
    name = draft.names.fresh(hint)
    draft.functions.append(f"def {name}{rest}")
    return draft.prepare("kernel", f"{draft.helper(Kernel)}({name})")


def _activated(total: str, group: Fused) -> str:
    activation = group.activation
    if activation.gelu:
        return f"F.gelu({total})"
    if activation.is_none:
        return total
    if activation.is_relu:
        return f"F.relu({total})"
    return f"F.hardtanh({total}, {literal(activation.low)}, {literal(activation.high)})"


@dataclass(frozen=True, slots=True)
class KernelRun:
    """Nodes that follow each other as one function, compiled as a whole."""

    operands: tuple[ir.Value, ...]
    results: tuple[ir.Value, ...]
    name: str = "kernel"

    def write(self, nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        draft = scope.draft
        inside = Scope(draft, scope.opsets)
        parameters = []
        for value in self.operands:
            parameters.append(draft.names.fresh(value.name or "x"))
            inside.forms[value] = parameters[-1]
        EAGER.write(nodes, inside)
        body = "\n".join(indented(inside.finished(inside.returned(self.results))))
        # A compiled function gets each weight it reads by itself.
        weights = list(dict.fromkeys(re.findall(rf"\b{WEIGHTS}\.(\w+)", body)))
        body = re.sub(rf"\b{WEIGHTS}\.(\w+)", r"own_\1", body)
        heads = ", ".join((*parameters, *(f"own_{name}" for name in weights)))
        kernel = _kernel_for("group", f"({heads}):\n{body}", draft)
        given = [scope.tensor(value) for value in self.operands]
        given += [f"{WEIGHTS}.{name}" for name in weights]
        results = scope.let("results", f"{kernel}({', '.join(given)})")
        for index, value in enumerate(self.results):
            scope.bind(value, f"{results}[{index}]")


@dataclass(frozen=True, slots=True)
class EagerRun:
    """The same nodes one by one."""

    name: str = "eager"

    def write(self, nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        EAGER.write(nodes, scope)


def pointwise_runs(steps: Sequence[Step]) -> list[tuple[Step, ...]]:
    """The steps, with pointwise nodes that follow each other taken together."""
    runs: list[tuple[Step, ...]] = []
    for step in steps:
        if runs and _is_pointwise(step) and _is_pointwise(runs[-1][-1]):
            runs[-1] = (*runs[-1], step)
        else:
            runs.append((step,))
    return runs


def is_pool(step: Step) -> bool:
    """Whether a step is a pool over few elements, which Inductor unrolls."""
    (node, *more) = step.nodes
    is_alone = not more and step.realisation is EAGER
    return is_alone and is_op(node, "MaxPool") and known_shape(node.outputs[0]) is not None


def _is_pointwise(step: Step) -> bool:
    if step.realisation is not EAGER or len(step.nodes) != 1:
        return False
    (node,) = step.nodes
    is_known = known_shape(node.outputs[0]) is not None
    is_float = node.outputs[0].dtype == ir.DataType.FLOAT
    return is_op(node, *POINTWISE) and is_known and is_float


def borders_of(
    nodes: tuple[ir.Node, ...],
) -> tuple[tuple[ir.Value, ...], tuple[ir.Value, ...]]:
    """What some nodes read from outside, and what is read of them there."""
    inside = set(nodes)
    read = dict.fromkeys(value for node in nodes for value in node.inputs if value is not None)
    operands = [v for v in read if v.producer() not in inside and constant_of(v) is None]
    results = [
        value
        for node in nodes
        for value in node.outputs
        if value.is_graph_output() or any(use.node not in inside for use in value.uses())
    ]
    return tuple(operands), tuple(results)
