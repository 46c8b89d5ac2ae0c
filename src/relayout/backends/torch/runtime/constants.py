"""Tensors made from shapes, and what training draws."""

from __future__ import annotations

from typing import Any

import torch


def eye_like(x: Any, shift: int, dtype: Any) -> Any:
    """Ones on a diagonal."""
    rows, columns = x.shape
    places = torch.arange(columns, device=x.device) - torch.arange(rows, device=x.device)[:, None]
    return (places == shift).to(dtype)


def dropout(x: Any, rate: float, training: bool) -> Any:
    kept = torch.ones_like(x, dtype=torch.bool)
    if not training or rate == 0:
        return x, kept
    kept = torch.rand_like(x) >= rate
    return torch.where(kept, x / (1 - rate), torch.zeros_like(x)), kept
