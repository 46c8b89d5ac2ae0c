"""Operators of ONNX Runtime: attention, activations, and those that its quantiser writes."""

from __future__ import annotations

from relayout.backends.torch.program.call import Call, Lowering
from relayout.backends.torch.program.scalars import literal
from relayout.backends.torch.runtime import attention
from relayout.backends.torch.runtime import quantization as runtime

DOMAIN = "com.microsoft"


def multi_head_attention(call: Call, *, spelt: bool = False) -> str:
    """Q, K and V with their heads side by side, and a bias that is added to the scores."""
    is_extra = any(call.has(index) for index in (3, 4, 6, 7, 8, 9))
    if is_extra or any(call.is_read(index) for index in (1, 2, 3)) or call.rank(1) != 3:
        raise call.refusal("has packed operands, a bias of operands, a mask of keys or a cache")
    if call.integer("unidirectional", 0) and _length(call, 0) != _length(call, 1):
        raise call.refusal("hides keys, of which there are not known to be as many as queries")
    heads = call.integer("num_heads", 1)
    scale = call.real("scale", 0.0)
    options = {
        "q_heads": heads,
        "kv_heads": heads,
        "scale": literal(scale) if scale else None,
        "causal": bool(call.integer("unidirectional", 0)),
        "left": -1,
        "right": -1,
        **({"spelt": True} if spelt else {}),
    }
    operands = (call.optional(0), call.optional(1), call.optional(2), call.optional(5))
    return call.helper(attention.attention, *operands, None, None, **options)


def _length(call: Call, index: int) -> int | str | None:
    """How many queries or keys there are."""
    shape = call.shape(index)
    return None if shape is None else shape[1]


def gelu(call: Call) -> str:
    return f"F.gelu({call.tensor(0)})"


def quick_gelu(call: Call) -> str:
    x, alpha = call.tensor(0), call.real("alpha", 1.702)
    return f"F.silu({x})" if alpha == 1 else f"{x} * torch.sigmoid({literal(alpha)} * {x})"


def qlinear_concat(call: Call) -> str:
    scale, zero, *rest = call.tensors
    parts = [
        call.helper(runtime.dequantize, *rest[index : index + 3], 0, 0)
        for index in range(0, len(rest), 3)
    ]
    joined = f"torch.cat([{', '.join(parts)}], {call.integer('axis', 0)})"
    return call.helper(runtime.requantize_like, joined, scale, zero)


def q_gemm(call: Call) -> str:
    """The bias is in units of the product of both scales."""
    a, a_scale, a_zero, b, b_scale, b_zero = (call.tensor(index) for index in range(6))
    if call.real("alpha", 1.0) != 1 or not call.has(7):
        raise call.refusal("has a factor, or a result that is not quantised")
    first = call.helper(runtime.centred, a, a_zero, -2)
    second = call.helper(runtime.centred, b, b_zero, -2 if call.integer("transB", 0) else -1)
    first += ".t()" if call.integer("transA", 0) else ""
    second += ".t()" if call.integer("transB", 0) else ""
    scales = (a_scale, b_scale, call.tensor(7), call.tensor(8), call.optional(6))
    return call.helper(runtime.requantize, f"{first} @ {second}", *scales, 1)


LOWERINGS: dict[str, Lowering] = {
    "Gelu": gelu,
    "MultiHeadAttention": multi_head_attention,
    "QLinearConcat": qlinear_concat,
    "QGemm": q_gemm,
    "QuickGelu": quick_gelu,
}
