"""Scaled dot-product attention with heads apart or side by side, with or without a past."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch.nn import functional as F


def split_heads(x: Any, heads: int) -> Any:
    """Features side by side become heads; four axes are heads already."""
    return x if x.dim() == 4 else x.unflatten(2, (heads, -1)).transpose(1, 2)


def join_heads(y: Any, like: Any) -> Any:
    return y if like.dim() == 4 else y.transpose(1, 2).flatten(2)


def visible(
    queries: int, keys: int, offset: Any, causal: bool, left: int, right: int, device: Any
) -> Any:
    """Which keys each query sees, the first query being at `offset`; None where all see all."""
    rows = torch.arange(queries, device=device).unsqueeze(1) + offset
    columns = torch.arange(keys, device=device)
    seen = [columns <= rows] if causal else []
    seen += [columns >= rows - left] if left >= 0 else []
    seen += [columns <= rows + right] if right >= 0 else []
    return functools.reduce(torch.logical_and, seen) if seen else None


def widened(mask: Any, keys: int) -> Any:
    """A mask may be short; what it does not speak of is not seen."""
    missing = keys - mask.shape[-1]
    if missing <= 0:
        return mask
    value = False if mask.dtype == torch.bool else float("-inf")
    return F.pad(mask, [0, missing], value=value)


def attention(
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    past_k: Any,
    past_v: Any,
    *,
    q_heads: int,
    kv_heads: int,
    scale: float | None,
    causal: bool,
    left: int,
    right: int,
    spelt: bool = False,
) -> Any:
    """By the fused operator of torch, or spelt out, which compilers join with what is around it."""
    given = q
    q, k, v = split_heads(q, q_heads), split_heads(k, kv_heads), split_heads(v, kv_heads)
    past = 0 if past_k is None else past_k.shape[2]
    if past:
        k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
    mask = None if mask is None else widened(mask, k.shape[2])
    is_plain = mask is None and not past and q.shape[2] == k.shape[2] and max(left, right) < 0
    if not is_plain:
        seen = visible(q.shape[2], k.shape[2], past, causal, left, right, q.device)
        mask, causal = combined(mask, seen), False
    if spelt and not causal:
        return join_heads(weighted_values(q, k, v, mask, scale), given)
    y = F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=causal, scale=scale, enable_gqa=q.shape[1] != k.shape[1]
    )
    return join_heads(y, given)


def weighted_values(q: Any, k: Any, v: Any, mask: Any, scale: float | None) -> Any:
    groups = q.shape[1] // k.shape[1]
    if groups > 1:
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    bias = None if mask is None else as_bias(mask, q.dtype)
    # Tensor cores are several times slower where rows are no multiple of 16 bytes.
    more = -k.shape[2] % (16 // q.element_size()) if q.is_cuda else 0
    if more:
        k, v, bias = with_hidden_keys(k, v, bias, more)
    scores = (q * factor) @ k.transpose(-1, -2)
    if bias is not None:
        scores = scores + bias
    return torch.softmax(scores, -1) @ v


def with_hidden_keys(k: Any, v: Any, bias: Any, more: int) -> tuple[Any, Any, Any]:
    """Some more keys and values, and what is added to scores so that none of them is seen."""
    known = k.shape[2]
    if bias is None:
        bias = torch.zeros(known, dtype=k.dtype, device=k.device)
    bias = bias.expand(*bias.shape[:-1], known)
    k, v = F.pad(k, [0, 0, 0, more]), F.pad(v, [0, 0, 0, more])
    return k, v, F.pad(bias, [0, more], value=float("-inf"))


def combined(mask: Any, seen: Any) -> Any:
    """Both masks: what either hides is hidden."""
    if mask is None or seen is None:
        return seen if mask is None else mask
    if mask.dtype == torch.bool:
        return mask & seen
    return torch.where(seen, mask, torch.full_like(mask, float("-inf")))


def attention_with_state(
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    past_k: Any,
    past_v: Any,
    lengths: Any,
    *,
    q_heads: int,
    kv_heads: int,
    scale: float | None,
    causal: bool,
    left: int,
    right: int,
    softcap: float,
    stage: int,
) -> Any:
    """The result, keys and values with their past, and the scores at some stage."""
    given = q
    q, k, v = split_heads(q, q_heads), split_heads(k, kv_heads), split_heads(v, kv_heads)
    past = 0 if past_k is None else past_k.shape[2]
    if past_k is not None:
        k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
    present = (k, v)
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    root = math.sqrt(factor)
    scores = [(q * root) @ (k * root).transpose(-1, -2)]
    offset = past if lengths is None else (lengths - q.shape[2]).reshape(-1, 1, 1, 1)
    seen = visible(q.shape[2], k.shape[2], offset, causal, left, right, q.device)
    if lengths is not None:
        steps = torch.arange(k.shape[2], device=q.device)
        inside = (steps < lengths.unsqueeze(1)).reshape(-1, 1, 1, k.shape[2])
        seen = combined(inside, seen)
    bias = 0 if mask is None else as_bias(widened(mask, k.shape[2]), q.dtype)
    if seen is not None:
        bias = bias + as_bias(seen, q.dtype)
    capped = scores[0] if softcap == 0 else softcap * torch.tanh(scores[0] / softcap)
    scores += [capped, capped + bias]
    # Where nothing is seen, nothing is given.
    weights = torch.softmax(scores[2], -1).nan_to_num(0.0)
    scores.append(weights)
    return join_heads(weights @ v, given), *present, scores[stage]


def as_bias(mask: Any, dtype: Any) -> Any:
    """What a mask adds to scores."""
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(
        ~mask, float("-inf")
    )


def rotary_embedding(
    x: Any, cos: Any, sin: Any, places: Any, *, interleaved: bool, rotated: int, heads: int
) -> Any:
    """Pairs of features turned by an angle that grows with their place."""
    given = x
    x = x.unflatten(2, (heads, -1)) if x.dim() == 3 else x.transpose(1, 2)
    size = rotated or x.shape[-1]
    turned, rest = x[..., :size], x[..., size:]
    if places is not None:
        cos, sin = cos[places], sin[places]
    cos, sin = cos[..., : size // 2].unsqueeze(2), sin[..., : size // 2].unsqueeze(2)
    if interleaved:
        a, b = turned[..., 0::2], turned[..., 1::2]
    else:
        a, b = turned.chunk(2, -1)
    real, imaginary = cos * a - sin * b, sin * a + cos * b
    if interleaved:
        turned = torch.stack([real, imaginary], -1).flatten(-2)
    else:
        turned = torch.cat([real, imaginary], -1)
    y = torch.cat([turned, rest], -1)
    return y.reshape(given.shape) if given.dim() == 3 else y.transpose(1, 2)
