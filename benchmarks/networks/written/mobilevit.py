"""MobileViT: convolutions, and attention between the pixels at the same place of all patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from benchmarks.networks.written.layers import (
    Head,
    Inverted,
    TransformerBlock,
    concatenated,
    conv,
)

PATCH = 2


class MobileViTBlock(nn.Module):  # type: ignore[misc]  # torch is read without its types
    """Convolutions around attention over an image that is unfolded into patches."""

    def __init__(self, channels: int, width: int, depth: int, heads: int = 4) -> None:
        super().__init__()
        self.into = nn.Sequential(conv(channels, channels), nn.Conv2d(channels, width, 1))
        self.blocks = nn.Sequential(*(TransformerBlock(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.back, self.merged = conv(width, channels, 1), conv(2 * channels, channels)

    def forward(self, x: Any) -> Any:
        y = self.into(x)
        batch, width, height, across = y.shape
        down, right = height // PATCH, across // PATCH
        y = y.reshape(batch * width * down, PATCH, right, PATCH).transpose(1, 2)
        y = y.reshape(batch, width, down * right, PATCH * PATCH).transpose(1, 3)
        y = self.norm(self.blocks(y.reshape(batch * PATCH * PATCH, down * right, width)))
        y = y.reshape(batch, PATCH * PATCH, down * right, width).transpose(1, 3)
        y = y.reshape(batch * width * down, right, PATCH, PATCH).transpose(1, 2)
        y = y.reshape(batch, width, height, across)
        return self.merged(concatenated(x, self.back(y)))


class MobileViT(nn.Module):  # type: ignore[misc]
    """Five stages, the last three with attention; images have a side that 64 divides."""

    def __init__(self, channels: Sequence[int], widths: Sequence[int], wider: int = 4) -> None:
        super().__init__()
        stem, one, two, three, four, five = channels
        self.body = nn.Sequential(
            conv(3, stem, 3, 2),
            Inverted(stem, one, 1, wider),
            Inverted(one, two, 2, wider),
            Inverted(two, two, 1, wider),
            Inverted(two, three, 2, wider),
            MobileViTBlock(three, widths[0], 2),
            Inverted(three, four, 2, wider),
            MobileViTBlock(four, widths[1], 4),
            Inverted(four, five, 2, wider),
            MobileViTBlock(five, widths[2], 3),
            conv(five, 4 * five, 1),
            Head(4 * five),
        )

    def forward(self, x: Any) -> Any:
        return self.body(x)
