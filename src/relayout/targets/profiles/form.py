"""A node as limits see it, as it is given or as a rule restates it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relayout.graph.read import NodeView, Shape, perm_of, shape_of
from relayout.graph.region import KERNEL_DOMAIN
from relayout.layout.permutation import Permutation
from relayout.layout.shuffle import StoredOrder
from relayout.layout.transport import Transport
from relayout.targets.channels_last import KERNELS, attributes_of


@dataclass(frozen=True, slots=True)
class NodeForm:
    """What is known of a node's operator, parameters and shapes."""

    op_type: str
    """The standard operator, also of a kernel that reads channels last."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """With the defaults of the standard."""
    operands: tuple[Shape | None, ...] = ()
    results: tuple[Shape | None, ...] = ()
    perm: Permutation | None = None
    """Of a Transpose."""

    @property
    def lead(self) -> Shape | None:
        return self.operands[0] if self.operands else None

    @property
    def shapes(self) -> tuple[Shape | None, ...]:
        return (*self.operands, *self.results)


def form_of(view: NodeView) -> NodeForm:
    """A node as it stands."""
    operator = standard_name(view.node.domain, view.op_type)
    return NodeForm(
        operator,
        _attributes(view, operator),
        tuple(map(shape_of, view.node.inputs)),
        tuple(map(shape_of, view.node.outputs)),
        perm_of(view.node) if operator == "Transpose" else None,
    )


def forms_of(view: NodeView, transport: Transport) -> list[NodeForm]:
    """The nodes that a node becomes."""
    changes = transport.changes
    if changes.steps:
        return [NodeForm(step.op_type, _given(step.attributes)) for step in changes.steps]
    operator = standard_name(
        view.node.domain if changes.domain is None else changes.domain,
        changes.op_type or view.op_type,
    )
    attributes = {**_attributes(view, operator), **_given(changes.attributes)}
    return [
        NodeForm(
            operator,
            attributes,
            _stored(tuple(map(shape_of, view.node.inputs)), transport.inputs),
            _stored(tuple(map(shape_of, view.node.outputs)), transport.outputs),
        )
    ]


def standard_name(domain: str, op_type: str) -> str:
    """The standard operator that a kernel stands for, or an operator's own name."""
    if domain == KERNEL_DOMAIN and op_type in KERNELS:
        return KERNELS[op_type].operator.op_type
    return op_type if domain in {"", "ai.onnx"} else f"{domain}.{op_type}"


def _attributes(view: NodeView, operator: str) -> dict[str, Any]:
    stated = attributes_of(operator, view.version).items()
    defaults = {name: each.default.value for name, each in stated if each.default is not None}
    own = view.node.attributes.items()
    return {**defaults, **{name: each.value for name, each in own if not each.is_ref()}}


def _given(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


def _stored(
    shapes: Sequence[Shape | None], orders: Sequence[StoredOrder | None]
) -> tuple[Shape | None, ...]:
    """Shapes in the orders that tensors are stored in."""
    return tuple(
        order.reorder(shape)
        if shape is not None and isinstance(order, Permutation) and order.rank == len(shape)
        else shape
        for shape, order in zip(shapes, orders, strict=False)
    )
