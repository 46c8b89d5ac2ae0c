"""Ensembles of decision trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relayout.backends.torch.program.call import Call
from relayout.backends.torch.runtime import trees as runtime
from relayout.layout.transport import Array

AGGREGATES = ("mean", "sum", "amin", "amax")
MEMBER = 6
"""The mode of conditions that look for a number in a list of them."""


@dataclass(frozen=True, slots=True)
class Forest:
    """Conditions with the leaves after them, so that one number names either."""

    count: int
    yes: NDArray[np.int64]
    no: NDArray[np.int64]
    roots: NDArray[np.int64]

    def depth(self) -> int | None:
        """How many conditions are on the longest way; None where one goes round."""
        at, depth = np.unique(self.roots), 0
        while (inner := at[at < self.count]).size:
            if depth > self.count:
                return None
            at, depth = np.unique([self.yes[inner], self.no[inner]]), depth + 1
        return depth


def tree_ensemble(call: Call) -> str:
    forest = _forest(call)
    depth = forest.depth()
    if depth is None:
        raise call.refusal("has a tree that leads back into itself")
    if call.integer("post_transform", 0):
        raise call.refusal("transforms its results, which runtimes do not do as the standard says")
    modes = call.attribute_array("nodes_modes")
    given = (
        call.table(forest.roots, "roots"),
        _tables(call, forest, modes),
        sorted({int(mode) for mode in modes}),
        depth,
        call.table(_members(call, len(forest.yes), modes), "members"),
    )
    leaves = call.helper(runtime.leaves_of, call.tensor(0), *given)
    return call.helper(
        runtime.tree_ensemble,
        f"{leaves} - {forest.count}",
        call.table(call.attribute_array("leaf_weights"), "weights"),
        call.table(_ints(call, "leaf_targetids"), "targets"),
        call.integer("n_targets", 1),
        repr(AGGREGATES[call.integer("aggregate_function", 1)]),
    )


def _ints(call: Call, name: str) -> NDArray[np.int64]:
    return np.array(call.ints(name) or (), np.int64)


def _forest(call: Call) -> Forest:
    """The nodes of all trees, each leaf leading to itself."""
    features = _ints(call, "nodes_featureids")
    count = len(features)
    leaves = count + np.arange(len(_ints(call, "leaf_targetids")))
    branches = []
    for name in ("true", "false"):
        places = _ints(call, f"nodes_{name}nodeids")
        is_leaf = _ints(call, f"nodes_{name}leafs") != 0
        branches.append(np.concatenate([np.where(is_leaf, places + count, places), leaves]))
    return Forest(count, branches[0], branches[1], _ints(call, "tree_roots"))


def _tables(call: Call, forest: Forest, modes: Array) -> str:
    """What conditions look at, as a tuple of weights with a place for each leaf too."""
    more = len(forest.yes) - forest.count
    missing = _ints(call, "nodes_missing_value_tracks_true") != 0
    columns = {
        "features": _ints(call, "nodes_featureids"),
        "splits": call.attribute_array("nodes_splits"),
        "modes": modes,
    }
    parts = [call.table(np.pad(column, (0, more)), name) for name, column in columns.items()]
    parts += [call.table(forest.yes, "yes"), call.table(forest.no, "no")]
    parts += [call.table(np.pad(missing, (0, more)), "missing") if missing.any() else "None"]
    return f"({', '.join(parts)})"


def _members(call: Call, count: int, modes: Array) -> Array:
    """By node the numbers that its condition looks for, filled up with NaN, which equals none."""
    dtype = call.attribute_array("nodes_splits").dtype
    nodes = np.flatnonzero(modes == MEMBER)
    if not nodes.size:
        return np.zeros((count, 0), dtype)
    listed = call.attribute_array("membership_values")
    groups = np.split(listed, np.flatnonzero(np.isnan(listed)) + 1)[: len(nodes)]
    if len(groups) < len(nodes):
        raise call.refusal("has conditions whose members it does not list")
    table = np.full((count, max(map(len, groups))), np.nan, dtype)
    for node, group in zip(nodes, groups, strict=True):
        table[node, : len(group)] = group
    return table
