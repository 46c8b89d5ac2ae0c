"""The rules of all operators, by domain and name."""

from __future__ import annotations

from relayout.verify.proof.call import Rule
from relayout.verify.proof.operators import (
    attention,
    contractions,
    control,
    elementwise,
    factors,
    indexing,
    moving,
    normalizations,
    quantised,
    reductions,
    shapes,
    windows,
    written_out,
)

RULES: dict[tuple[str, str], Rule] = {}
for family in (
    attention,
    contractions,
    control,
    elementwise,
    factors,
    indexing,
    moving,
    normalizations,
    quantised,
    reductions,
    shapes,
    windows,
    written_out,
):
    RULES |= family.RULES
