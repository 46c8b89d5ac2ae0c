"""Convolutions whose windows do not overlap as products."""

from __future__ import annotations

from typing import Any

import torch


def pointwise(x: Any, matrix: Any, bias: Any, relu: bool) -> Any:
    """Every pixel of a tensor stored channels last times a matrix, with the bias added."""
    n, c, h, w = x.shape
    rows = x.permute(0, 2, 3, 1).reshape(-1, c)
    product = torch._addmm_activation if relu else torch.addmm  # noqa: SLF001 - has no other name
    y = product(bias, rows, matrix)
    return y.unflatten(0, (n, h, w)).permute(0, 3, 1, 2)


def tiled(x: Any, matrix: Any, bias: Any, kernel: tuple[int, int], is_last: bool) -> Any:
    """Every window of a tensor that is cut into windows times a matrix, with the bias added.

    The numbers of a window are in the order in which the tensor is stored: channels last, or first.
    """
    n, c, h, w = x.shape
    rows, columns = h // kernel[0], w // kernel[1]
    cut = x.reshape(n, c, rows, kernel[0], columns, kernel[1])
    windows = cut.permute(0, 2, 4, 3, 5, 1) if is_last else cut.permute(0, 2, 4, 1, 3, 5)
    y = torch.addmm(bias, windows.flatten(3).flatten(0, 2), matrix)
    return y.unflatten(0, (n, rows, columns)).permute(0, 3, 1, 2)
