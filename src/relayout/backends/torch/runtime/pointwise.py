"""Pointwise convolutions as products."""

from __future__ import annotations

from typing import Any

import torch


def pointwise(x: Any, matrix: Any, bias: Any, relu: bool) -> Any:
    """Every pixel of a tensor stored channels last times a matrix, with the bias added."""
    n, c, h, w = x.shape
    rows = x.permute(0, 2, 3, 1).reshape(-1, c)
    product = torch._addmm_activation if relu else torch.addmm  # noqa: SLF001 - has no other name
    y = product(bias, rows, matrix)
    return y.reshape(n, h, w, -1).permute(0, 3, 1, 2)
