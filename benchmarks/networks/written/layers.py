"""What several of the networks are made of."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional


def conv(
    read: int, made: int, kernel: int = 3, stride: int = 1, *, groups: int = 1, act: bool = True
) -> Any:
    """A convolution, BatchNormalization, and SiLU unless there is to be none."""
    slid = nn.Conv2d(read, made, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(slid, nn.BatchNorm2d(made), *([nn.SiLU()] if act else []))


class Inverted(nn.Module):  # type: ignore[misc]  # torch is read without its types
    """MobileNet's block: wider, depthwise, narrower, and around it where shapes are the same."""

    def __init__(self, read: int, made: int, stride: int = 1, wider: int = 4) -> None:
        super().__init__()
        inner = read * wider
        self.body = nn.Sequential(
            conv(read, inner, 1),
            conv(inner, inner, 3, stride, groups=inner),
            conv(inner, made, 1, act=False),
        )
        self.is_around = stride == 1 and read == made

    def forward(self, x: Any) -> Any:
        y = self.body(x)
        return x + y if self.is_around else y


class Attention(nn.Module):  # type: ignore[misc]
    """Attention of tokens to themselves, or to fewer that are made of them."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.pair = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Any, seen: Any) -> Any:
        batch, length, width = x.shape
        q = self.query(x).reshape(batch, length, self.heads, -1).transpose(1, 2)
        pair = self.pair(seen).reshape(batch, seen.shape[1], 2, self.heads, -1)
        k, v = pair.permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class TransformerBlock(nn.Module):  # type: ignore[misc]
    """Attention and a perceptron, each behind its LayerNormalization."""

    def __init__(self, width: int, heads: int, wider: int = 2) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        inner = wider * width
        self.mlp = nn.Sequential(nn.Linear(width, inner), nn.SiLU(), nn.Linear(inner, width))

    def forward(self, x: Any) -> Any:
        y = self.first(x)
        x = x + self.attention(y, y)
        return x + self.mlp(self.second(x))


def tokens(x: Any) -> Any:
    return x.flatten(2).transpose(1, 2)


def image(x: Any, side: int) -> Any:
    return x.transpose(1, 2).reshape(x.shape[0], -1, side, side)


class Head(nn.Module):  # type: ignore[misc]
    """Classes from the mean of an image."""

    def __init__(self, read: int, classes: int = 1000) -> None:
        super().__init__()
        self.linear = nn.Linear(read, classes)

    def forward(self, x: Any) -> Any:
        return self.linear(x.mean((2, 3)))


def concatenated(*parts: Any) -> Any:
    return torch.cat(parts, 1)
