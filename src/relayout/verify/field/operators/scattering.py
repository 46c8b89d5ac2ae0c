"""Operators that write elements at indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from relayout.verify.field.call import at_one_type
from relayout.verify.field.opaque import opaque
from relayout.verify.field.operators.indexing import elements_at, places
from relayout.verify.field.residues import reduced

if TYPE_CHECKING:
    from relayout.verify.field.call import Computed, FieldCall, FieldKernel
    from relayout.verify.field.values import FieldTensor
    from relayout.verify.inputs import Array


def scatter_elements(call: FieldCall) -> Computed:
    (data, updates), kind = at_one_type([call.tensor(0), call.tensor(2)])
    axis = call.integer("axis", 0)
    indexes = places(call.tensor(1), data.shape[axis])
    return _written(call, kind, data, elements_at(indexes, axis), updates)


def scatter_nd(call: FieldCall) -> Computed:
    (data, updates), kind = at_one_type([call.tensor(0), call.tensor(2)])
    indexes = call.tensor(1)
    columns = tuple(
        places(indexes.with_data(indexes.data[..., i]), data.shape[i])
        for i in range(indexes.shape[-1])
    )
    return _written(call, kind, data, columns, updates)


def _written(
    call: FieldCall, kind: FieldTensor, data: Array, at: tuple[Any, ...], updates: Array
) -> Computed:
    """Elements written or added; other ways to combine them are hashed."""
    result = data.copy()
    how = call.text("reduction", "none")
    if how == "none":
        result[at] = updates
    elif how == "add":
        np.add.at(result, at, updates)
        result = result if kind.is_true else reduced(result)
    else:
        return opaque(call)
    return kind.with_data(result)


KERNELS: dict[str, FieldKernel] = {
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
}
