"""What the C++ kernels and their callers in Python agree on, stated once.

The runtime makes the C++ header and the ctypes structure of a step from `INTERFACE`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any

FLAGS = (
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-ivopts",
    "-std=c++17",
    "-fPIC",
    "-shared",
    "-pthread",
)
"""How the kernels are compiled."""

LANES = 8
"""The floats of a vector: depths have to be multiples where whole vectors are read."""

COLUMNS = 2 * LANES
"""The columns of a panel of weights."""

DEEPEST = 320
"""The rows of a matrix that one pass of a product reads; a panel of them stays in the first cache.

A product by quarters multiplies twice as many channels at a time."""

MOST_CHANNELS = 8192
"""The channels that Winograd's convolution and products by quarters may have."""

MOST_TILES = 256
"""The tiles of Winograd's convolution that threads may share; more are cut into blocks."""

MOST_ROWS = 512
"""The rows of a product by quarters that threads may share; more are cut into blocks."""

TILE, SMALL_TILE = 4, 2
"""Results on a side of a tile of Winograd's convolutions."""

POINTS = TILE + 2
"""The matrices that a line of Winograd's points has in scratch, whatever the tiles."""

LINE = 16
"""The floats of a cache line, with which every buffer begins."""

OVERREAD = 2 * LINE
"""The floats after a buffer that vectors may read."""


class KernelKind(IntEnum):
    """What a step does."""

    CONVOLUTION = 0
    WINOGRAD = 1
    DEPTHWISE = 2
    MAX_POOL = 3
    AVERAGE = 4
    LAYER_NORM = 5
    BORDER = 6
    BORDER_FIRST = 7
    SUM = 8
    WIDENED = 9
    STRASSEN = 10
    NARROWED = 11
    SMALL_WINOGRAD = 12

    @property
    def taken_along(self) -> int:
        """How many of the steps after it are done with it."""
        return {KernelKind.WIDENED: 1, KernelKind.NARROWED: 2}.get(self, 0)


class ActivationCode(IntEnum):
    """What happens to a result; without an activation the bounds of CLIP are infinite."""

    CLIP = 0
    GELU = 1
    SILU = 2
    HARD_SWISH = 3
    SIGMOID = 4


@dataclass(frozen=True, slots=True)
class NativeInterface:
    """How kernels are compiled and called: all that a caller of the library has to know."""

    flags: Sequence[str]
    constants: Mapping[str, int]
    enums: Mapping[str, Mapping[str, int]]
    step: Sequence[tuple[str, str]]
    """Names and C types of the fields of a step, in their order."""
    functions: Mapping[str, Sequence[str]]
    """By name the C types of a function: of its result, then of its parameters."""

    @property
    def literal(self) -> dict[str, Any]:
        """The interface in plain values, as written modules have it."""
        return asdict(self)


def _numbered(kind: type[IntEnum]) -> dict[str, int]:
    return {member.name: int(member) for member in kind}


INTERFACE = NativeInterface(
    flags=FLAGS,
    constants={
        "LANES": LANES,
        "COLUMNS": COLUMNS,
        "DEEPEST": DEEPEST,
        "MOST_CHANNELS": MOST_CHANNELS,
        "MOST_TILES": MOST_TILES,
        "MOST_ROWS": MOST_ROWS,
        "TILE": TILE,
        "SMALL_TILE": SMALL_TILE,
        "POINTS": POINTS,
        "LINE": LINE,
        "OVERREAD": OVERREAD,
    },
    enums={kind.__name__: _numbered(kind) for kind in (KernelKind, ActivationCode)},
    step=(
        ("kind", "int64_t"),
        # Of the operand.
        ("batch", "int64_t"),
        ("height", "int64_t"),
        ("width", "int64_t"),
        ("depth", "int64_t"),
        # Of the result.
        ("out_height", "int64_t"),
        ("out_width", "int64_t"),
        ("out_depth", "int64_t"),
        # Of the window.
        ("kernel_height", "int64_t"),
        ("kernel_width", "int64_t"),
        ("stride", "int64_t"),
        ("pad_top", "int64_t"),
        ("pad_left", "int64_t"),
        ("activation", "int64_t"),
        # The bounds of CLIP; the lower one is epsilon in a normalisation.
        ("low", "float"),
        ("high", "float"),
        # Tensors, stored channels last.
        ("input", "const float *"),
        ("weight", "const float *"),
        ("bias", "const float *"),
        ("residual", "const float *"),
        # Where each row of a product begins in its operand, or nothing.
        ("table", "const int32_t *"),
        ("output", "float *"),
        ("scratch", "float *"),
    ),
    functions={
        "run": ("void", "const Step *", "int64_t", "int", "double *"),
        "after_fork": ("void",),
        "interface_digest": ("const char *",),
        "step_layout": ("int64_t", "int64_t"),
    },
)
