"""Steps of C++ kernels, as the runtime and the library read them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from relayout.backends.torch.providers.library_group import Activation, Curve
from relayout.backends.torch.providers.native_interface import (
    COLUMNS,
    DEEPEST,
    LANES,
    LINE,
    MOST_CHANNELS,
    MOST_ROWS,
    MOST_TILES,
    OVERREAD,
    POINTS,
    SMALL_TILE,
    TILE,
    ActivationCode,
    KernelKind,
)
from relayout.backends.torch.providers.window import Sliding

HALVED = (48, 96)
"""The rows, and the rows and columns of the matrix, from which quarters of products may pay."""

ROW_WISE = frozenset(
    (KernelKind.CONVOLUTION, KernelKind.WIDENED, KernelKind.NARROWED, KernelKind.STRASSEN)
)
"""Products whose rows may begin anywhere in their operand."""

TILES = {KernelKind.WINOGRAD: TILE, KernelKind.SMALL_WINOGRAD: SMALL_TILE}
"""Results on a side of a tile, by the kernel that has such tiles."""


ACTIVATION_CODES: dict[Curve | None, ActivationCode] = {
    None: ActivationCode.CLIP,
    Curve.GELU: ActivationCode.GELU,
    Curve.SILU: ActivationCode.SILU,
    Curve.HARD_SWISH: ActivationCode.HARD_SWISH,
    Curve.SIGMOID: ActivationCode.SIGMOID,
}


def kinds_of(window: Sliding, activation: Activation) -> list[KernelKind]:
    """The kernels for a convolution: the plain one, then those with fewer multiplications."""
    plain = KernelKind.CONVOLUTION
    if window.groups != 1:
        return [plain]
    depth, (n, out_depth, height, width) = window.source[1], window.result
    if (window.kernel, window.strides) == ((3, 3), (1, 1)):
        fits = max(depth, out_depth) <= MOST_CHANNELS and depth % LANES == out_depth % LANES == 0
        return [plain, *TILES] if fits and activation.curve is not Curve.GELU else [plain]
    halves = depth % COLUMNS == out_depth % (2 * COLUMNS) == 0 and depth <= MOST_CHANNELS
    is_large = n * height * width >= HALVED[0] and min(depth, out_depth) >= HALVED[1]
    return [plain, KernelKind.STRASSEN] if halves and is_large else [plain]


def form_of(kind: KernelKind, form: str) -> str:
    """How the weight of a convolution or a product is packed for a kernel."""
    if kind in TILES:
        return "small winograd" if kind == KernelKind.SMALL_WINOGRAD else "winograd"
    return f"strassen {form}" if kind == KernelKind.STRASSEN else form


def plain_form(form: str) -> str:
    """How the same weight is packed for a product that is done as it stands."""
    return form.removeprefix("strassen ")


Image: TypeAlias = tuple[int, int, int, int]
"""Batch, height, width and depth, as they are stored."""


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A tensor of a program: an operand, a result or something in between."""

    image: Image
    operand: int | None = None
    """Which operand of the program it is, if it is one."""

    @property
    def size(self) -> int:
        return math.prod(self.image)


@dataclass(frozen=True, slots=True)
class NativeStep:
    """One kernel: what it reads and writes, and its parameters."""

    kind: KernelKind
    source: Buffer
    result: Buffer
    weight: tuple[str, str] = ("", "")
    """How a weight is packed, and its name."""
    bias: str = ""
    residual: Buffer | None = None
    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int] = (0, 0)
    activation: Activation = field(default_factory=Activation)
    epsilon: float | None = None

    @property
    def buffers(self) -> list[Buffer]:
        found = [self.source, self.result]
        return found if self.residual is None else [*found, self.residual]

    @property
    def can_sum(self) -> bool:
        """Whether it could add another tensor to what it computes."""
        is_product = self.kind in {KernelKind.CONVOLUTION, KernelKind.STRASSEN, *TILES}
        return is_product and self.residual is None and self.activation.is_none

    @property
    def has_activation(self) -> bool:
        """Whether its kernel has the activation: bounds all have, sums any curve, products GELU."""
        is_product = self.kind in {KernelKind.CONVOLUTION, KernelKind.STRASSEN}
        curve = self.activation.curve
        return curve is None or self.kind == KernelKind.SUM or (is_product and curve is Curve.GELU)

    @property
    def scratch(self) -> int:
        """Floats of scratch: Winograd's tiles, transformed, or the sums of a product's quarters."""
        n, height, width, _ = self.result.image
        depth = self.source.image[3]
        if self.kind == KernelKind.STRASSEN:
            rows, slices = n * height * width, -(-depth // (2 * DEEPEST))
            sums = 4 * -(-rows // 2) * (depth // 2 + slices * COLUMNS)
            return math.prod(self.kernel) * sums if rows <= MOST_ROWS else 0
        side = TILES.get(self.kind)
        if side is None:
            return 0
        tiles = min(MOST_TILES, n * -(-height // side) * -(-width // side))
        matrices = POINTS * (side + 1) + side + 2
        return matrices * (-(-tiles * (depth + COLUMNS) // COLUMNS) | 1) * COLUMNS

    def with_sum(self, other: Buffer, result: Buffer, activation: Activation) -> NativeStep:
        return replace(self, residual=other, result=result, activation=activation)


def placed(steps: list[NativeStep], results: list[Buffer]) -> tuple[dict[Buffer, int], int]:
    """Where each buffer lies in the arena, and how long the arena is.

    Scratch lies in front; a place is used again when no step reads what lay there. What a step
    reads is still read while those that are done with it write.
    """
    front = max((step.scratch for step in steps), default=0)
    born: dict[Buffer, int] = {}
    dies: dict[Buffer, int] = {}
    for index, step in enumerate(steps):
        for buffer in step.buffers:
            if buffer.operand is None:
                born.setdefault(buffer, index)
                last = index + step.kind.taken_along
                dies[buffer] = len(steps) if buffer in results else last
    places: dict[Buffer, int] = {}
    end = front
    for buffer, begin in born.items():
        held = sorted((places[other], _room(other)) for other in places if dies[other] >= begin)
        places[buffer] = _gap(held, _room(buffer), front)
        end = max(end, places[buffer] + _room(buffer))
    return places, end


def _room(buffer: Buffer) -> int:
    """Whole cache lines, and a few floats more, which vectors may read."""
    return -(-(buffer.size + OVERREAD) // LINE) * LINE


def _gap(held: list[tuple[int, int]], size: int, front: int) -> int:
    """The least gap that is large enough."""
    at, best = front, None
    for place, room in held:
        if place - at >= size and (best is None or place - at < best[0]):
            best = (place - at, at)
        at = max(at, place + room)
    return at if best is None else best[1]


def entry_of(step: NativeStep, places: dict[Buffer, int]) -> dict[str, Any]:
    """A step as the module has it."""
    batch, height, width, depth = step.source.image
    is_row_wise = step.kind in ROW_WISE and (step.kernel, step.strides) != ((1, 1), (1, 1))
    return {
        "kind": int(step.kind),
        "batch": batch,
        "height": height,
        "width": width,
        "depth": depth,
        "out_height": step.result.image[1],
        "out_width": step.result.image[2],
        "out_depth": step.result.image[3],
        "kernel_height": step.kernel[0],
        "kernel_width": step.kernel[1],
        "stride_down": step.strides[0],
        "stride": step.strides[1],
        "pad_top": step.pads[0],
        "pad_left": step.pads[1],
        **_finish_of(step),
        "table": is_row_wise,
        "input": _place(step.source, places),
        "residual": _place(step.residual, places),
        "output": _place(step.result, places),
        "scratch": 0 if step.scratch else None,
    }


def _finish_of(step: NativeStep) -> dict[str, Any]:
    return {
        "activation": int(ACTIVATION_CODES[step.activation.curve]),
        "low": step.activation.low if step.epsilon is None else step.epsilon,
        "high": step.activation.high,
        "weight": step.weight,
        "bias": step.bias,
    }


def _place(buffer: Buffer | None, places: dict[Buffer, int]) -> int | str | None:
    """Where a buffer begins: in the arena, or in an operand of the program."""
    if buffer is None:
        return None
    if buffer.operand is not None:
        return f"input {buffer.operand}"
    return places[buffer]
