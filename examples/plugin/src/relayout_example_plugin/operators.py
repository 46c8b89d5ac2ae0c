"""Two operators of the domain com.example."""

from __future__ import annotations

from relayout import OpFacts
from relayout.graph.read import NodeView
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Changes, Transport
from relayout.ops.facts import CARRIES, LengthFacts
from relayout.ops.kernels import COMPLEX
from relayout.ops.like import facts_like
from relayout.ops.registry import facts_named
from relayout.ops.rule import OpRule, lead_only

DOMAIN = "com.example"
SCALE_AXIS = "ScaleAxis"
AXIS = "axis"


def scale_axis(view: NodeView, order: Permutation) -> Transport:
    """Where operand 0 is stored in `order`, so is the result, and the axis is at another place."""
    axis = view.integer(AXIS, 1) % order.rank
    return lead_only(view, order, Changes({AXIS: order.position(axis)}))


def operators() -> tuple[OpFacts, ...]:
    """An operator like a known one, and one with facts of its own."""
    return (
        facts_like(facts_named("", "Gelu"), "Gelu", domain=DOMAIN, op_type="MyGelu"),
        OpFacts(
            (SCALE_AXIS,),
            OpRule(scale_axis),
            DOMAIN,
            kernel=COMPLEX,
            layout=CARRIES,
            lengths=LengthFacts(keeps_shape=True),
        ),
    )
