"""Networks that give a map: U-Nets, and detectors with their neck and head."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.networks.written.layers import concatenated, conv


def pair(read: int, made: int) -> Any:
    """Two convolutions with Relu."""
    layers: list[Any] = []
    for source in (read, made):
        layers += [nn.Conv2d(source, made, 3, 1, 1), nn.BatchNorm2d(made), nn.ReLU()]
    return nn.Sequential(*layers)


def transposed(read: int, made: int) -> Any:
    return nn.ConvTranspose2d(read, made, 2, 2)


def resized(read: int, made: int) -> Any:
    up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
    return nn.Sequential(up, nn.Conv2d(read, made, 1))


def shuffled(read: int, made: int) -> Any:
    return nn.Sequential(nn.Conv2d(read, 4 * made, 1), nn.PixelShuffle(2))


class UNet(nn.Module):  # type: ignore[misc]  # torch is read without its types
    """Down, and up again beside what was there on the way down."""

    def __init__(self, widths: Sequence[int], up: Callable[[int, int], Any]) -> None:
        super().__init__()
        steps = list(itertools.pairwise(widths))
        self.stem = pair(3, widths[0])
        self.down = nn.ModuleList(pair(read, made) for read, made in steps)
        self.up = nn.ModuleList(up(made, read) for read, made in reversed(steps))
        self.joined = nn.ModuleList(pair(2 * read, read) for read, _ in reversed(steps))
        self.head = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x: Any) -> Any:
        kept = [self.stem(x)]
        for down in self.down:
            kept.append(down(functional.max_pool2d(kept[-1], 2)))
        x = kept.pop()
        for up, joined in zip(self.up, self.joined, strict=True):
            x = joined(concatenated(kept.pop(), up(x)))
        return self.head(x)


class Split(nn.Module):  # type: ignore[misc]
    """YOLOv8's block: half of the channels through bottlenecks, all results side by side."""

    def __init__(self, read: int, made: int, depth: int, *, is_around: bool) -> None:
        super().__init__()
        half = made // 2
        self.is_around = is_around
        self.into, self.merged = conv(read, made, 1), conv((2 + depth) * half, made, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(conv(half, half), conv(half, half)) for _ in range(depth)
        )

    def forward(self, x: Any) -> Any:
        parts = list(self.into(x).chunk(2, 1))
        for block in self.blocks:
            y = block(parts[-1])
            parts.append(parts[-1] + y if self.is_around else y)
        return self.merged(concatenated(*parts))


class Pooled(nn.Module):  # type: ignore[misc]
    """Pools of several sizes side by side."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.into, self.merged = conv(channels, half, 1), conv(4 * half, channels, 1)

    def forward(self, x: Any) -> Any:
        parts = [self.into(x)]
        for _ in range(3):
            parts.append(functional.max_pool2d(parts[-1], 5, 1, 2))
        return self.merged(concatenated(*parts))


def enlarged(x: Any) -> Any:
    return functional.interpolate(x, scale_factor=2.0, mode="nearest")


class Yolo(nn.Module):  # type: ignore[misc]
    """Boxes and scores of classes from three scales, in the manner of YOLOv8."""

    def __init__(self, width: int, depth: int, classes: int = 80) -> None:
        super().__init__()
        w, d = width, depth
        self.early = nn.Sequential(
            conv(3, w, 3, 2), conv(w, 2 * w, 3, 2), Split(2 * w, 2 * w, d, is_around=True)
        )
        self.third = self._stage(2 * w, 4 * w, 2 * d)
        self.fourth = self._stage(4 * w, 8 * w, 2 * d)
        self.fifth = nn.Sequential(self._stage(8 * w, 16 * w, d), Pooled(16 * w))
        self.up_four = Split(24 * w, 8 * w, d, is_around=False)
        self.up_three = Split(12 * w, 4 * w, d, is_around=False)
        self.down_three, self.down_four = conv(4 * w, 4 * w, 3, 2), conv(8 * w, 8 * w, 3, 2)
        self.again_four = Split(12 * w, 8 * w, d, is_around=False)
        self.again_five = Split(24 * w, 16 * w, d, is_around=False)
        sizes = (4 * w, 8 * w, 16 * w)
        self.boxes = nn.ModuleList(self._head(size, 64) for size in sizes)
        self.classes = nn.ModuleList(self._head(size, classes) for size in sizes)

    @staticmethod
    def _stage(read: int, made: int, depth: int) -> Any:
        return nn.Sequential(conv(read, made, 3, 2), Split(made, made, depth, is_around=True))

    @staticmethod
    def _head(read: int, made: int) -> Any:
        inner = max(64, read // 4)
        return nn.Sequential(conv(read, inner), conv(inner, inner), nn.Conv2d(inner, made, 1))

    def forward(self, x: Any) -> Any:
        three = self.third(self.early(x))
        four = self.fourth(three)
        five = self.fifth(four)
        up = self.up_four(concatenated(enlarged(five), four))
        small = self.up_three(concatenated(enlarged(up), three))
        middle = self.again_four(concatenated(self.down_three(small), up))
        large = self.again_five(concatenated(self.down_four(middle), five))
        scales = zip((small, middle, large), self.boxes, self.classes, strict=True)
        found = [concatenated(box(y), cls(y)).flatten(2) for y, box, cls in scales]
        boxes, scores = torch.cat(found, 2).split((64, found[0].shape[1] - 64), 1)
        batch, _, count = boxes.shape
        sides = boxes.reshape(batch, 4, 16, count).transpose(1, 2).softmax(1)
        places = torch.arange(16, dtype=x.dtype, device=x.device).reshape(1, 16, 1, 1)
        return concatenated((sides * places).sum(1), scores.sigmoid())


class TinyYolo(nn.Module):  # type: ignore[misc]
    """A plain backbone with LeakyRelu and two scales with anchors, in the manner of YOLOv3."""

    def __init__(self, width: int = 16, classes: int = 80) -> None:
        super().__init__()
        w, made = width, 3 * (classes + 5)
        sizes = [3, w, 2 * w, 4 * w, 8 * w, 16 * w, 32 * w]
        self.layers = nn.ModuleList(map(leaky, sizes, sizes[1:]))
        self.deep, self.narrow = leaky(32 * w, 64 * w), leaky(64 * w, 16 * w, 1)
        self.large = nn.Sequential(leaky(16 * w, 32 * w), nn.Conv2d(32 * w, made, 1))
        self.side = leaky(16 * w, 8 * w, 1)
        self.small = nn.Sequential(leaky(24 * w, 16 * w), nn.Conv2d(16 * w, made, 1))

    def forward(self, x: Any) -> Any:
        for number, layer in enumerate(self.layers):
            x = layer(x)
            if number == 4:
                kept = x
            if number < 5:
                x = functional.max_pool2d(x, 2)
        x = self.narrow(self.deep(x))
        y = concatenated(enlarged(self.side(x)), kept)
        return torch.cat([anchored(self.large(x)), anchored(self.small(y))], 1)


def leaky(read: int, made: int, kernel: int = 3) -> Any:
    slid = nn.Conv2d(read, made, kernel, 1, kernel // 2, bias=False)
    return nn.Sequential(slid, nn.BatchNorm2d(made), nn.LeakyReLU(0.1))


def anchored(x: Any) -> Any:
    """A row for each anchor at each place."""
    batch, channels, height, width = x.shape
    x = x.reshape(batch, 3, channels // 3, height, width).permute(0, 1, 3, 4, 2)
    return x.sigmoid().reshape(batch, 3 * height * width, channels // 3)
