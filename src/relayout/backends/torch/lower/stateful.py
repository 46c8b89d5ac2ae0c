"""Operators that are given their state and give the next one."""

from __future__ import annotations

from relayout.backends.torch.program.call import Call, Lowering, Several
from relayout.backends.torch.program.scalars import literal
from relayout.backends.torch.runtime import stateful as runtime

DECAY, RATE = 4, 5
OPERANDS = {
    "linear": (),
    "gated": (DECAY,),
    "delta": (RATE,),
    "gated_delta": (DECAY, RATE),
}
"""By the rule of a linear attention, the operands it needs besides Q, K, V and the state."""


def linear_attention(call: Call) -> Several:
    rule = call.string("update_rule", "gated_delta")
    given = tuple(index for index in (DECAY, RATE) if call.has(index))
    if OPERANDS.get(rule) != given:
        raise call.refusal(f"has operands that are not those of the rule {rule!r}")
    options = {
        "q_heads": call.integer("q_num_heads", 0),
        "kv_heads": call.integer("kv_num_heads", 0),
        "scale": literal(call.real("scale", 0.0)),
    }
    operands = tuple(call.optional(index) for index in range(6))
    return Several(call.helper(runtime.linear_attention, *operands, **options), 2)


def causal_convolution(call: Call) -> Several:
    operands = tuple(call.optional(index) for index in range(4))
    activated = call.string("activation", "none") in {"silu", "swish"}
    return Several(call.helper(runtime.causal_convolution, *operands, activated), 2)


LOWERINGS: dict[str, Lowering] = {
    "CausalConvWithState": causal_convolution,
    "LinearAttention": linear_attention,
}
