"""How many axes the kernels of builtins have, as tried with LiteRT 2.3."""

from __future__ import annotations

MOST_AXES_OF_ANY = 6
"""XNNPACK takes no more, and fails where it is given more."""

MOST_AXES: dict[str, int] = {
    **dict.fromkeys(("PAD", "PADV2", "BATCH_MATMUL", "CONV_3D"), 5),
    **dict.fromkeys(("SLICE", "STRIDED_SLICE", "TRANSPOSE"), 6),
    **dict.fromkeys(("RESHAPE", "GATHER", "GATHER_ND", "SCATTER_ND", "BROADCAST_TO"), 8),
}
"""Where it is another number than `MOST_AXES_OF_ANY`, or one that others must know."""
