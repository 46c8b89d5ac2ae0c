"""Boxes: which of them to keep, and what lies in them."""

from __future__ import annotations

import math
from typing import Any

import torch


def corners(boxes: Any, centred: bool) -> Any:
    """Boxes as the least and the largest of both coordinates."""
    if centred:
        middle, half = boxes[..., :2], boxes[..., 2:] / 2
        return torch.cat([middle - half, middle + half], -1)
    a, b = boxes[..., :2], boxes[..., 2:]
    return torch.cat([torch.minimum(a, b), torch.maximum(a, b)], -1)


def overlaps(box: Any, boxes: Any) -> Any:
    """The part of the union of two boxes that belongs to both."""
    low = torch.maximum(box[:2], boxes[:, :2])
    high = torch.minimum(box[2:], boxes[:, 2:])
    shared = (high - low).clamp(min=0).prod(1)
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    union = (box[2:] - box[:2]).prod() + areas - shared
    return torch.where(union > 0, shared / union, torch.zeros_like(union))


def kept_boxes(boxes: Any, scores: Any, most: int, overlap: float, least: float | None) -> Any:
    """The places of the boxes to keep, best first."""
    waiting = torch.argsort(scores, descending=True, stable=True)
    if least is not None:
        waiting = waiting[scores[waiting] > least]
    kept: list[Any] = []
    while waiting.numel() and len(kept) < most:
        best, waiting = waiting[0], waiting[1:]
        kept.append(best)
        waiting = waiting[overlaps(boxes[best], boxes[waiting]) <= overlap]
    return torch.stack(kept) if kept else waiting[:0]


def non_max_suppression(
    boxes: Any, scores: Any, most: int, overlap: float, least: float | None, centred: bool
) -> Any:
    """Rows of batch, class and box."""
    boxes = corners(boxes, centred)
    rows = []
    for batch in range(scores.shape[0]):
        for label in range(scores.shape[1]):
            kept = kept_boxes(boxes[batch], scores[batch, label], int(most), overlap, least)
            where = torch.tensor([batch, label], device=kept.device).expand(len(kept), 2)
            rows.append(torch.cat([where, kept.unsqueeze(1)], 1))
    if not rows:
        return torch.zeros(0, 3, dtype=torch.int64, device=scores.device)
    return torch.cat(rows).to(torch.int64)


def roi_align(
    x: Any,
    rois: Any,
    batches: Any,
    *,
    mode: str,
    height: int,
    width: int,
    ratio: int,
    scale: float,
    shift: float,
) -> Any:
    """Samples between pixels, in a grid over each box, pooled in cells."""
    results = []
    for roi, batch in zip(rois * scale - shift, batches, strict=True):
        left, top, right, bottom = roi.tolist()
        least = 0.0 if shift else 1.0
        tall, wide = max(bottom - top, least) / height, max(right - left, least) / width
        rows, columns = ratio or max(1, math.ceil(tall)), ratio or max(1, math.ceil(wide))
        y = top + (torch.arange(height * rows, device=x.device) + 0.5) * (tall / rows)
        z = left + (torch.arange(width * columns, device=x.device) + 0.5) * (wide / columns)
        taps = bilinear_taps(x[batch], y, z)
        shape = (x.shape[1], height, rows, width, columns)
        if mode == "avg":
            results.append(sum(taps).reshape(shape).mean((2, 4)))
        else:
            best = torch.stack([tap.reshape(shape) for tap in taps]).amax(0)
            results.append(best.amax((2, 4)))
    return torch.stack(results) if results else x.new_zeros(0, x.shape[1], height, width)


def bilinear_taps(image: Any, y: Any, z: Any) -> list[Any]:
    """The four weighted neighbours of each sample; beyond the image there is nothing."""
    height, width = image.shape[1:]
    inside = ((y >= -1) & (y <= height)).unsqueeze(1) & ((z >= -1) & (z <= width))
    y, z = y.clamp(0, height - 1).to(image.dtype), z.clamp(0, width - 1).to(image.dtype)
    top, left = y.floor().long(), z.floor().long()
    bottom, right = (top + 1).clamp(max=height - 1), (left + 1).clamp(max=width - 1)
    down, across = (y - top).unsqueeze(1), z - left
    return [
        image[:, rows][:, :, columns] * weight * inside
        for rows, columns, weight in (
            (top, left, (1 - down) * (1 - across)),
            (top, right, (1 - down) * across),
            (bottom, left, down * (1 - across)),
            (bottom, right, down * across),
        )
    ]
