"""The kinds that TVM's Relax derives for operators, where they are not those of its Relay.

Relay states a kind for each operator. Relax looks at the indices of the function it became: an
operand that is read at the very place that is written makes it elementwise. An operator that
TVM takes apart is one operator here, of the highest kind of its parts along the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from relayout.graph.read import NodeView, Parameter, is_standard, perm_of, shape_of
from relayout.layout.transport import Refusal
from relayout.ops.fusing import Fusing, fuses_as
from relayout.ops.kernels import KindRule
from relayout.ops.kind import Kind


def relax_fuses_as(view: NodeView) -> Fusing:
    """How a node takes part in kernels, as Relax has it."""
    fusing = fuses_as(view)
    if fusing.kind is Kind.OPAQUE or not is_standard(view.node):
        return fusing
    rule = _RULES.get(view.op_type, _by_shapes if fusing.kind is Kind.BROADCAST else fusing.kind)
    kind = rule if isinstance(rule, Kind) else rule(view)
    return replace(fusing, kind=kind, opaque_for="opaque" if kind is Kind.OPAQUE else "")


def _by_shapes(view: NodeView) -> Kind:
    """Elementwise as soon as one operand has the shape of the result."""
    result = shape_of(view.node.outputs[0])
    shapes = [view.shape(place) for place in range(view.arity)]
    is_same = result is not None and None not in result and result in shapes
    return Kind.ELEMENTWISE if is_same else Kind.BROADCAST


def _transposed(view: NodeView) -> Kind:
    order = perm_of(view.node)
    return Kind.ELEMENTWISE if order is not None and order.is_identity else Kind.INJECTIVE


def _joined(view: NodeView) -> Kind:
    return Kind.ELEMENTWISE if view.arity == 1 else Kind.INJECTIVE


_STARTS, _STEPS = Parameter("starts", 1), Parameter("steps", 4)


def _sliced(view: NodeView) -> Kind:
    """What begins at the beginning of each axis stays in its place."""
    starts, steps = _STARTS.read_ints(view), _STEPS.read_ints(view)
    if starts is None or isinstance(starts, Refusal) or isinstance(steps, Refusal):
        return Kind.INJECTIVE
    is_in_place = not any(starts) and all(step == 1 for step in steps or ())
    return Kind.ELEMENTWISE if is_in_place else Kind.INJECTIVE


def _multiplied(view: NodeView) -> Kind:
    """A product with a vector reads each element of the other operand once."""
    return Kind.REDUCTION if 1 in {view.rank(0), view.rank(1)} else Kind.COMPLEX


_RULES: Mapping[str, Kind | KindRule] = MappingProxyType(
    {
        **dict.fromkeys(("PRelu", "BatchNormalization"), Kind.ELEMENTWISE),
        **dict.fromkeys(("ConstantOfShape", "OneHot"), Kind.BROADCAST),
        **dict.fromkeys(("Max", "Min", "Sum", "GlobalMaxPool"), Kind.REDUCTION),
        **dict.fromkeys(("ArgMax", "ArgMin", "Einsum", "Mean", "ReduceMean"), Kind.COMPLEX),
        **dict.fromkeys(
            ("Gather", "GatherElements", "GatherND", "GridSample", "RoiAlign", "Size"), Kind.OPAQUE
        ),
        "Tile": Kind.INJECTIVE,
        "Squeeze": _by_shapes,
        "Transpose": _transposed,
        "Concat": _joined,
        "Slice": _sliced,
        "MatMul": _multiplied,
    }
)
