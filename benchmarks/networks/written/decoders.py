"""Decoders: a step with a cache, or a prompt as a whole, in the manner of GPT-2 and of Llama."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional


class GptBlock(nn.Module):  # type: ignore[misc]  # torch is read without its types
    """Attention of new tokens to all there were, and a perceptron with tanh's GELU."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.all, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        gelu = nn.GELU(approximate="tanh")
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), gelu, nn.Linear(4 * width, width))

    def forward(self, x: Any, past_k: Any, past_v: Any) -> Any:
        batch, length, width = x.shape
        parts = self.all(self.first(x)).reshape(batch, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
        y = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.second(x))


class GptStep(nn.Module):  # type: ignore[misc]
    """One token after a past whose keys and values are given, all layers in one tensor."""

    def __init__(self, width: int = 768, heads: int = 12, depth: int = 12) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50257, width)
        self.blocks = nn.ModuleList(GptBlock(width, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 50257, bias=False)

    def forward(self, tokens: Any, keys: Any, values: Any) -> Any:
        x = self.embedding(tokens)
        for block, k, v in zip(self.blocks, keys.unbind(0), values.unbind(0), strict=True):
            x = block(x, k, v)
        return self.head(self.norm(x))


class RmsNorm(nn.Module):  # type: ignore[misc]
    """A scale by the root of the mean square, taken in float32."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Any) -> Any:
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * y.to(x.dtype)


def turned(x: Any, cos: Any, sin: Any) -> Any:
    """Rotary embedding of halves."""
    one, two = x.chunk(2, -1)
    return x * cos + torch.cat([-two, one], -1) * sin


class LlamaBlock(nn.Module):  # type: ignore[misc]
    """Causal attention with fewer keys than queries, and a gated perceptron."""

    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        self.heads, self.groups = heads, groups
        size = width // heads
        self.first, self.second = RmsNorm(width), RmsNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, groups * size, bias=False) for _ in range(2))
        self.out = nn.Linear(width, width, bias=False)
        inner = 11 * width // 4
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: Any, cos: Any, sin: Any) -> Any:
        batch, length, width = x.shape
        y = self.first(x)
        q = self.q(y).reshape(batch, length, self.heads, -1).transpose(1, 2)
        k = self.k(y).reshape(batch, length, self.groups, -1).transpose(1, 2)
        v = self.v(y).reshape(batch, length, self.groups, -1).transpose(1, 2)
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        times = self.heads // self.groups
        k, v = k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)
        z = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(z.transpose(1, 2).reshape(batch, length, width))
        y = self.second(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class LlamaPrompt(nn.Module):  # type: ignore[misc]
    """A prompt as a whole: the states after its last block."""

    def __init__(
        self, width: int = 1024, heads: int = 16, groups: int = 4, depth: int = 8, length: int = 256
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32000, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, groups) for _ in range(depth))
        self.norm = RmsNorm(width)
        size = width // heads
        rates = 10000 ** -(torch.arange(0, size, 2) / size)
        angles = torch.outer(torch.arange(length).float(), rates).repeat(1, 2)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, tokens: Any) -> Any:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return self.norm(x)
