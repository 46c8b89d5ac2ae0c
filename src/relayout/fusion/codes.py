"""The codes by which a fusion is refused."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
    CAPABILITY = "capability"
    CYCLE = "cycle"
    ROW = "row"
    RESULTS = "results"
    READERS = "readers"
    NO_GAIN = "no_gain"
    APART = "apart"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Why:
    """Why a fusion was refused, and the number of what stood in its way."""

    code: Code
    at: int | None = None
