"""Which operators may be evaluated at compile time: their result has only one right answer."""

from __future__ import annotations

MOVES_ONLY = frozenset(
    (
        *("Concat", "Expand", "Flatten", "Gather", "GatherND", "Identity", "Reshape", "ScatterND"),
        *("Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where"),
    )
)
"""Every element of the result is an element of an operand, bit for bit."""

INTEGER_ARITHMETIC = frozenset(
    (
        *(
            "Abs",
            "Add",
            "Cast",
            "ConstantOfShape",
            "Div",
            "Equal",
            "Max",
            "Min",
            "Mod",
            "Mul",
            "Neg",
        ),
        *("Range", "ReduceProd", "Shape", "Size", "Sub"),
    )
)
"""Exact on integers; shapes are computed with these."""

ROUNDS_SIGNED = frozenset(("Div",))
"""Exact on integers that are not negative; otherwise runtimes round in different directions."""

SHAPED_BY_VALUES = frozenset(
    (
        *("ConstantOfShape", "Expand", "OneHot", "Pad", "Range", "Reshape", "Resize", "Slice"),
        *("Split", "Squeeze", "Tile", "TopK", "Unsqueeze"),
    )
)
"""Operators whose operands say by their values what shape the result has."""
