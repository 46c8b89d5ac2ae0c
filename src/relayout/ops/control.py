"""Control flow, sequences and optionals."""

from __future__ import annotations

from relayout.ops.rule import barrier

RULES = (
    barrier(
        *("If", "Loop", "Scan", "SequenceMap"),
        reason="the bodies of control flow read and give tensors in the order they are written in",
    ),
    barrier(
        *("SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert"),
        *("SequenceLength", "SplitToSequence", "ConcatFromSequence"),
        reason="the tensors of a sequence share no order that is known here",
    ),
    barrier(
        *("Optional", "OptionalGetElement", "OptionalHasElement"),
        reason="an optional may hold no tensor, or a sequence of them",
    ),
)
