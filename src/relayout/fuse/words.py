"""The words in which a fusion is refused."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from relayout.fuse.forward_graph import Vertex


class Code(StrEnum):
    """Each names one condition that was tested and failed."""

    OPAQUE = "opaque"
    DATA_DEPENDENT = "data_dependent"
    UNKNOWN_OPERATOR = "unknown_op"
    EXTERN = "extern"
    NO_POST_DOMINATOR = "no_post_dominator"
    DEPTH = "depth"
    ARGUMENTS = "arguments"
    BETWEEN = "between"
    PATH = "path"
    TWO_ANCHORS = "two_anchors"
    REDUCTION_SOURCE = "reduction_source"
    INJECTIVE_INTO_REDUCTION = "injective_into_reduction"
    COMPLEX_PROLOGUE = "complex_prologue"
    TUPLE_SINK = "tuple_sink"
    REPEAT = "repeat"
    NUMERIC = "numeric"
    CYCLE = "cycle"
    ROW = "row"
    NO_GAIN = "no_gain"
    UNKNOWN_LENGTHS = "unknown_lengths"


@dataclass(frozen=True, slots=True)
class Why:
    """Why one vertex was not merged, and which other one is to blame."""

    code: Code
    at: Vertex | None = None
