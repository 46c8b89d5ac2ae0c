"""Small networks in torch, in the forms that exporters make Transposes of."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class HeadAttention(nn.Module):  # type: ignore[misc]
    """Attention with one product for queries, keys and values, as vision transformers have it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.joint = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        joint = self.joint(x).reshape(batch, length, 3, self.heads, width // self.heads)
        query, key, value = joint.permute(2, 0, 3, 1, 4).unbind(0)
        scores = (query @ key.transpose(-2, -1)) * (width // self.heads) ** -0.5
        mixed = scores.softmax(-1) @ value
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class TransformerBlock(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = HeadAttention(width, heads)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inner = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.first(x))
        return x + self.inner(self.second(x))


class Patches(nn.Module):  # type: ignore[misc]
    """A vision transformer over patches of a picture."""

    def __init__(self, width: int = 96, heads: int = 3, depth: int = 4) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, width, 16, 16)
        self.blocks = nn.Sequential(*(TransformerBlock(width, heads) for _ in range(depth)))
        self.head = nn.Linear(width, 100)

    def forward(self, picture: Any) -> Any:
        x = self.embed(picture).flatten(2).transpose(1, 2)
        return self.head(self.blocks(x).mean(1))


class Windows(nn.Module):  # type: ignore[misc]
    """Attention within windows of a picture, moved in and out of them by Transposes."""

    def __init__(self, width: int = 48, heads: int = 3, window: int = 7, depth: int = 3) -> None:
        super().__init__()
        self.window = window
        self.embed = nn.Conv2d(3, width, 4, 4)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.blocks = nn.ModuleList(TransformerBlock(width, heads) for _ in range(depth))

    def forward(self, picture: Any) -> Any:
        x = self.embed(picture).permute(0, 2, 3, 1)
        for norm, block in zip(self.norms, self.blocks, strict=True):
            x = x + self._joined(block(self._windows(norm(x))), x.shape)
        return x.permute(0, 3, 1, 2).mean((2, 3))

    def _windows(self, x: Any) -> Any:
        batch, height, width, depth = x.shape
        side = self.window
        x = x.reshape(batch, height // side, side, width // side, side, depth)
        return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, side * side, depth)

    def _joined(self, x: Any, shape: Any) -> Any:
        batch, height, width, depth = shape
        side = self.window
        x = x.reshape(batch, height // side, width // side, side, side, depth)
        return x.permute(0, 1, 3, 2, 4, 5).reshape(batch, height, width, depth)


class ChannelsLastBlocks(nn.Module):  # type: ignore[misc]
    """Depthwise convolutions, with normalisation and products on channels that come last."""

    def __init__(self, width: int = 64, depth: int = 4) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, width, 4, 4)
        self.depthwise = nn.ModuleList(
            nn.Conv2d(width, width, 7, padding=3, groups=width) for _ in range(depth)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.inner = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(depth)
        )

    def forward(self, picture: Any) -> Any:
        x = self.embed(picture)
        for depthwise, norm, inner in zip(self.depthwise, self.norms, self.inner, strict=True):
            last = depthwise(x).permute(0, 2, 3, 1)
            x = x + inner(norm(last)).permute(0, 3, 1, 2)
        return x.mean((2, 3))


class Frames(nn.Module):  # type: ignore[misc]
    """A recurrent network over frames of audio, between convolutions along time."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.first = nn.Conv1d(40, width, 3, padding=1)
        self.recurrent = nn.GRU(width, width, batch_first=True)
        self.last = nn.Conv1d(width, 40, 3, padding=1)

    def forward(self, frames: Any) -> Any:
        x = torch.relu(self.first(frames)).transpose(1, 2)
        x, _ = self.recurrent(x)
        return self.last(x.transpose(1, 2))


NETWORKS: dict[str, tuple[type[nn.Module], tuple[int, ...]]] = {
    "patches": (Patches, (1, 3, 224, 224)),
    "windows": (Windows, (1, 3, 112, 112)),
    "channels_last_blocks": (ChannelsLastBlocks, (1, 3, 128, 128)),
    "frames": (Frames, (1, 40, 100)),
}
"""By name, a network and the shape of its input."""
