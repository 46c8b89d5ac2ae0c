"""Ensembles of decision trees, gone through level by level for all rows and trees together."""

from __future__ import annotations

from typing import Any

import torch


def leaves_of(x: Any, roots: Any, nodes: Any, modes: Any, depth: int, members: Any) -> Any:
    """The place at which each row ends in each tree; leaves lead to themselves."""
    features, splits, kinds, yes, no, missing = nodes
    at = roots.expand(x.shape[0], -1)
    for _ in range(depth):
        value = x.gather(1, features[at])
        taken = is_taken(value, splits[at], kinds[at], modes, members[at])
        if missing is not None:
            taken = taken | (missing[at] & value.isnan())
        at = torch.where(taken, yes[at], no[at])
    return at


def is_taken(value: Any, split: Any, kind: Any, modes: Any, members: Any) -> Any:
    """Whether values fulfil conditions, which are of these modes."""
    compare = (torch.le, torch.lt, torch.ge, torch.gt, torch.eq, torch.ne)
    taken = torch.zeros_like(value, dtype=torch.bool)
    for mode in modes:
        if mode < len(compare):
            found = compare[mode](value, split)
        else:
            found = (value.unsqueeze(-1) == members).any(-1)
        taken = torch.where(kind == mode, found, taken)
    return taken


def tree_ensemble(leaves: Any, weights: Any, targets: Any, count: int, aggregate: str) -> Any:
    """The weights of leaves, put together by target; 0 where a target has none."""
    found, places = weights[leaves], targets[leaves]
    result = torch.zeros(leaves.shape[0], count, dtype=weights.dtype, device=leaves.device)
    if aggregate in {"amin", "amax"}:
        return result.scatter_reduce(1, places, found, aggregate, include_self=False)
    total = result.scatter_add(1, places, found)
    return total / leaves.shape[1] if aggregate == "mean" else total
