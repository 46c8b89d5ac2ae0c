"""Weights in the orders in which C++ kernels read them; copied into written modules."""

from __future__ import annotations

from typing import Any

import torch


def shares(whole: int, count: int) -> list[int]:
    """A whole cut into parts of nearly equal size, as the library cuts it."""
    return [whole * (part + 1) // count - whole * part // count for part in range(count)]


def packed_matrix(matrix: Any, runs: int, columns: int, deepest: int) -> Any:
    """A matrix as the product reads it: by pass over its rows, then panels of some columns."""
    rows, width = matrix.shape
    panels = -(-width // columns)
    matrix = torch.nn.functional.pad(matrix, [0, panels * columns - width])
    cuts = [rows]
    if rows > deepest:
        length = rows // runs
        cuts = shares(length, -(-length // deepest)) * runs
    parts = [
        part.reshape(-1, panels, columns).transpose(0, 1).reshape(-1)
        for part in torch.split(matrix, cuts)
    ]
    return torch.cat(parts)


def winograd_weight(weight: Any, columns: int, is_small: bool) -> Any:
    """The filters of a 3x3 convolution, transformed: for each panel of columns 36 matrices.

    For small tiles there are 16: what a filter is at four of the six points that large ones have.
    """
    rows = [[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [0, 0, 24], [1, 2, 4], [1, -2, 4]]
    change = torch.tensor(rows[: 4 if is_small else 6], dtype=torch.float64) / 24
    filters = torch.einsum("ij,ocjk,lk->ilco", change, weight.double(), change).float()
    matrices = filters.flatten(0, 1)
    width = -weight.shape[0] % columns
    panels = torch.nn.functional.pad(matrices, [0, width]).unflatten(2, (-1, columns))
    return panels.permute(2, 0, 1, 3).reshape(-1)


def strassen_weight(matrix: Any, pixels: int, columns: int, deepest: int) -> Any:
    """A matrix by quarters and their sums: by slices of its rows, then panels of half its columns.

    A slice is some channels of one pixel of a window. For each panel of it there are seven blocks.
    """
    depth = len(matrix) // pixels
    parts = shares(depth // columns, -(-depth // (2 * deepest)))
    cuts = [columns * part for part in parts] * pixels
    return torch.cat([quarters(rows, columns) for rows in torch.split(matrix.double(), cuts)])


def quarters(matrix: Any, columns: int) -> Any:
    """The seven factors that are quarters of a matrix, or sums of them."""
    (b11, b12), (b21, b22) = (half.chunk(2, dim=1) for half in matrix.chunk(2))
    t1, t3 = b12 - b11, b22 - b12
    t2 = b22 - t1
    factors = torch.stack([b11, b21, t2, t1, b22, t3, b21 - t2]).float()
    return factors.unflatten(2, (-1, columns)).permute(2, 0, 1, 3).reshape(-1)


def native_weight(form: str, weight: Any, columns: int, deepest: int) -> Any:
    """A weight in the form that the kernel of a step reads, such as "strassen matrix"."""
    way, _, form = form.rpartition(" ")
    if form == "winograd":
        return winograd_weight(weight, columns, way == "small")
    if form == "depthwise":
        return weight.squeeze(1).permute(1, 2, 0).reshape(-1)
    if form == "vector":
        return weight.reshape(-1)
    matrix, runs = weight.t() if form == "transposed" else weight, 1
    if form == "filters":
        matrix, runs = weight.permute(2, 3, 1, 0).reshape(-1, weight.shape[0]), weight.shape[2]
    if way == "strassen":
        pixels = weight[0, 0].numel() if form == "filters" else 1
        return strassen_weight(matrix, pixels, columns, deepest)
    return packed_matrix(matrix, runs, columns, deepest)
