"""Operators that keep a state from one call to the next: linear attention, causal convolution."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional as F


def heads_first(x: Any, heads: int) -> Any:
    """Features side by side as heads, in the type that a state is summed in: `[B, H, T, D]`."""
    return x.to(torch.float32).unflatten(2, (heads, -1)).transpose(1, 2)


def linear_attention(
    q: Any,
    k: Any,
    v: Any,
    past: Any,
    decay: Any,
    rate: Any,
    *,
    q_heads: int,
    kv_heads: int,
    scale: float,
) -> Any:
    """What is read at each step of a state that decays and to which keys with values are added.

    With a rate the value that a key has is moved towards the new one, else this one is added.
    """
    dtype, state_dtype = q.dtype, (q if past is None else past).dtype
    q, k, v = heads_first(q, q_heads), heads_first(k, kv_heads), heads_first(v, kv_heads)
    state = k.new_zeros(*k.shape[:2], k.shape[-1], v.shape[-1])
    if past is not None:
        state = past.to(k.dtype)
    kept = None if decay is None else heads_first(decay, kv_heads).exp()
    rate = None if rate is None else heads_first(rate, rate.shape[-1])
    q = q.unflatten(1, (kv_heads, -1)) * (scale or 1 / math.sqrt(q.shape[-1]))
    results = [v.new_zeros(*q.shape[:3], 0, v.shape[-1])]
    for step in range(q.shape[3]):
        key, value = k[:, :, step, :, None], v[:, :, step, None]
        if kept is not None:
            state = state * kept[:, :, step, :, None]
        if rate is not None:
            value = rate[:, :, step, None] * (value - key.mT @ state)
        state = state + key * value
        results.append(q[:, :, :, step : step + 1] @ state.unsqueeze(2))
    result = torch.cat(results, 3).flatten(1, 2).transpose(1, 2).flatten(2)
    return result.to(dtype), state.to(state_dtype)


def causal_convolution(x: Any, weight: Any, bias: Any, past: Any, activated: bool) -> Any:
    """Each channel with what came before it, and the end of it for what comes after."""
    reach = weight.shape[2] - 1
    wide = F.pad(x, [reach, 0]) if past is None else torch.cat([past, x], 2)
    y = F.conv1d(wide, weight, bias, groups=x.shape[1])
    return F.silu(y) if activated else y, wide[..., wide.shape[2] - reach :]
