"""Transformers over shrinking images: PVT v2, CoAtNet, and XCiT, which attends across channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.networks.written.layers import (
    Attention,
    Head,
    Inverted,
    conv,
    image,
    tokens,
)


class PvtBlock(nn.Module):  # type: ignore[misc]  # torch is read without its types
    """Attention to a smaller image, and a perceptron with a depthwise convolution inside."""

    def __init__(self, width: int, heads: int, shrunk: int, wider: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.shrink = nn.Conv2d(width, width, shrunk, shrunk) if shrunk > 1 else None
        self.norm = nn.LayerNorm(width)
        inner = wider * width
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.depthwise = nn.Conv2d(inner, inner, 3, 1, 1, groups=inner)

    def forward(self, x: Any, side: int) -> Any:
        y = self.first(x)
        seen = y
        if self.shrink is not None:
            seen = self.norm(tokens(self.shrink(image(y, side))))
        x = x + self.attention(y, seen)
        y = tokens(self.depthwise(image(self.up(self.second(x)), side)))
        return x + self.down(functional.gelu(y))


class PvtStage(nn.Module):  # type: ignore[misc]
    """A smaller image with more channels, and blocks over its pixels."""

    def __init__(self, read: int, width: int, depth: int, block: tuple[int, int, int]) -> None:
        super().__init__()
        kernel, stride = (7, 4) if read == 3 else (3, 2)
        self.patches = nn.Conv2d(read, width, kernel, stride, kernel // 2)
        self.begin, self.end = nn.LayerNorm(width), nn.LayerNorm(width)
        self.blocks = nn.ModuleList(PvtBlock(width, *block) for _ in range(depth))

    def forward(self, x: Any) -> Any:
        x = self.patches(x)
        side = x.shape[-1]
        x = self.begin(tokens(x))
        for block in self.blocks:
            x = block(x, side)
        return image(self.end(x), side)


class Pvt(nn.Module):  # type: ignore[misc]
    """The second version of the pyramid vision transformer."""

    def __init__(self, widths: Sequence[int], depths: Sequence[int]) -> None:
        super().__init__()
        blocks = zip((1, 2, 5, 8), (8, 4, 2, 1), (8, 8, 4, 4), strict=True)
        settings = zip((3, *widths), widths, depths, blocks, strict=False)
        self.body = nn.Sequential(*(PvtStage(*each) for each in settings), Head(widths[-1]))

    def forward(self, x: Any) -> Any:
        return self.body(x)


class RelativeAttention(nn.Module):  # type: ignore[misc]
    """Attention with a bias for each pair of places."""

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.all = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.bias = nn.Parameter(torch.randn(1, heads, length, length))

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        parts = self.all(x).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = parts.unbind(0)
        scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5 + self.bias
        y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class CoAtBlock(nn.Module):  # type: ignore[misc]
    """Relative attention and a perceptron over the pixels of an image."""

    def __init__(self, width: int, heads: int, side: int) -> None:
        super().__init__()
        self.side = side
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = RelativeAttention(width, heads, side * side)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Any) -> Any:
        x = tokens(x)
        x = x + self.attention(self.first(x))
        return image(x + self.mlp(self.second(x)), self.side)


class CoAtNet(nn.Module):  # type: ignore[misc]
    """Two stages of convolutions and two of attention, for images with a side of 224."""

    def __init__(self, widths: Sequence[int] = (64, 96, 192, 384, 768)) -> None:
        super().__init__()
        stem, one, two, three, four = widths
        self.body = nn.Sequential(
            conv(3, stem, 3, 2),
            conv(stem, stem),
            Inverted(stem, one, 2),
            Inverted(one, one),
            Inverted(one, two, 2),
            *(Inverted(two, two) for _ in range(2)),
            conv(two, three, 1, 2, act=False),
            *(CoAtBlock(three, three // 32, 14) for _ in range(5)),
            conv(three, four, 1, 2, act=False),
            *(CoAtBlock(four, four // 32, 7) for _ in range(2)),
            Head(four),
        )

    def forward(self, x: Any) -> Any:
        return self.body(x)


class CrossCovariance(nn.Module):  # type: ignore[misc]
    """Attention of channels to channels, by how they go together over all places."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.all, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.temperature = nn.Parameter(torch.ones(heads, 1, 1))

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        parts = self.all(x).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 4, 1)
        q, k, v = parts.unbind(0)
        q, k = functional.normalize(q, dim=-1), functional.normalize(k, dim=-1)
        y = (q @ k.transpose(-2, -1) * self.temperature).softmax(-1) @ v
        return self.out(y.permute(0, 3, 1, 2).reshape(batch, length, width))


class XcitBlock(nn.Module):  # type: ignore[misc]
    """Attention across channels, a local depthwise part, and a perceptron."""

    def __init__(self, width: int, heads: int, side: int) -> None:
        super().__init__()
        self.side = side
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.attention = CrossCovariance(width, heads)
        self.local = nn.Sequential(
            nn.Conv2d(width, width, 3, 1, 1, groups=width),
            nn.GELU(),
            nn.BatchNorm2d(width),
            nn.Conv2d(width, width, 3, 1, 1, groups=width),
        )
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Any) -> Any:
        first, second, third = self.norms
        x = x + self.attention(first(x))
        x = x + tokens(self.local(image(second(x), self.side)))
        return x + self.mlp(third(x))


class Xcit(nn.Module):  # type: ignore[misc]
    """For images with a side of 224, cut into patches of 16."""

    def __init__(self, width: int = 192, depth: int = 12) -> None:
        super().__init__()
        steps = (width // 8, width // 4, width // 2, width)
        pairs = zip((3, *steps), steps, strict=False)
        self.patches = nn.Sequential(*(conv(read, made, 3, 2) for read, made in pairs))
        self.blocks = nn.Sequential(*(XcitBlock(width, width // 48, 14) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x: Any) -> Any:
        x = self.blocks(tokens(self.patches(x)))
        return self.head(self.norm(x).mean(1))
