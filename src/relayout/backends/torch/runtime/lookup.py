"""Numbers that are looked up in tables: labels, and n-grams of a vocabulary."""

from __future__ import annotations

from typing import Any

import torch


def places_in(table: Any, x: Any) -> Any:
    """Where numbers are in a sorted table; -1, which is also the last place, for those it lacks."""
    if table.shape[0] == 0:
        return torch.full_like(x, -1, dtype=torch.int64)
    places = torch.searchsorted(table, x.contiguous()).clamp(max=table.shape[0] - 1)
    return torch.where(table[places] == x, places, -1)


def encoded(x: Any, keys: Any, values: Any, has_nan: bool) -> Any:
    """The values of keys; the last is that of all others, the one before it that of NaN, if any."""
    places = places_in(keys, x)
    if has_nan:
        places = torch.where(x.isnan(), -2, places)
    return values[places]


def ngram_counts(x: Any, tokens: Any, sizes: Any, length: int, skips: int) -> Any:
    """How often n-grams occur in each row, whose tokens may lie apart by equal distances.

    For each size there are tables that find, token by token, the n-gram that begins so, and the
    column it counts in; n-grams that are unknown count in one more column.
    """
    rows = x.unsqueeze(0) if x.dim() == 1 else x
    ids = places_in(tokens, rows.to(torch.int64))
    counts = torch.zeros(ids.shape[0], length + 1, device=x.device)
    for tables, columns in sizes:
        for distance in range(1, skips + 2 if tables else 2):
            width = max(0, ids.shape[1] - distance * len(tables))
            found = ids[:, :width]
            for place, table in enumerate(tables, 1):
                following = ids[:, place * distance : place * distance + width]
                longer = places_in(table, found * tokens.shape[0] + following)
                found = torch.where((found < 0) | (following < 0), -1, longer)
            counts.scatter_add_(1, columns[found], torch.ones_like(found, dtype=counts.dtype))
    counts = counts[:, :length]
    return counts.squeeze(0) if x.dim() == 1 else counts
