"""Attention and the embeddings that go with it."""

from __future__ import annotations

from relayout.backends.torch.program.call import Call, Lowering, Results, Several
from relayout.backends.torch.program.scalars import literal
from relayout.backends.torch.runtime import attention as runtime


def attention(call: Call, *, spelt: bool = False) -> Results:
    """With `spelt`, as products and a Softmax where nothing is kept of the past."""
    given = tuple(call.optional(index) for index in range(7))
    scale = call.view.node.attributes.get("scale")
    options = {
        "q_heads": call.integer("q_num_heads", 0),
        "kv_heads": call.integer("kv_num_heads", 0),
        "scale": None if scale is None else literal(scale.as_float()),
        "causal": bool(call.integer("is_causal", 0)),
        "left": call.integer("left_window_size", -1),
        "right": call.integer("right_window_size", -1),
    }
    softcap = call.real("softcap", 0.0)
    if softcap == 0 and not any(call.is_read(index) for index in (1, 2, 3)) and not call.has(6):
        return call.helper(
            runtime.attention, *given[:6], **options, **({"spelt": True} if spelt else {})
        )
    options["softcap"] = literal(softcap)
    options["stage"] = call.integer("qk_matmul_output_mode", 0)
    return Several(call.helper(runtime.attention_with_state, *given, **options), 4)


def rotary_embedding(call: Call) -> str:
    given = tuple(call.optional(index) for index in range(4))
    options = {
        "interleaved": bool(call.integer("interleaved", 0)),
        "rotated": call.integer("rotary_embedding_dim", 0),
        "heads": call.integer("num_heads", 0),
    }
    return call.helper(runtime.rotary_embedding, *given, **options)


LOWERINGS: dict[str, Lowering] = {
    "Attention": attention,
    "RotaryEmbedding": rotary_embedding,
}
