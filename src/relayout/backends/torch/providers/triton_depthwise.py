"""A depthwise convolution, with bias and activation, as one kernel in Triton.

Libraries read a pixel once for every tap that covers it. Here a thread has a few channels of
several neighbouring results and uses a pixel for all of them while it is in a register.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from relayout.backends.torch.program.scope import Scope
from relayout.backends.torch.program.statements import indented
from relayout.backends.torch.providers.conv_form import ConvForm
from relayout.backends.torch.providers.library_group import LibraryGroup
from relayout.backends.torch.providers.triton_text import activated, given_names, kernel_named
from relayout.backends.torch.providers.window import Sliding

WARP = 32
DEPTHS = (64, 32, 16)
"""How many channels a program may take, the widest that divides all of them first."""


@dataclass(frozen=True, slots=True)
class DepthwiseTile:
    """What one program computes, and how many channels of it a thread has."""

    rows: int
    columns: int
    lanes: int


TILES = (DepthwiseTile(8, 8, 4), DepthwiseTile(4, 4, 8))


@dataclass(frozen=True, slots=True)
class TritonDepthwise(ConvForm):
    """The whole group, channels last."""

    tile: DepthwiseTile = TILES[0]

    @property
    def kind(self) -> str:
        tile = self.tile
        return f"triton {tile.rows}x{tile.columns} by {tile.lanes}"

    def write(self, _nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        group, draft = self.group, scope.draft
        kernel = kernel_named("depthwise", _kernel(self), draft)
        run = draft.function("run_depthwise", _launch(self, kernel))
        taps = draft.prepare(
            f"{group.output.name}_taps",
            f"{scope.tensor(group.weight)}.flatten(1).t().contiguous()",
        )
        given = [self.source(scope), taps]
        given += [] if group.bias is None else [scope.tensor(group.bias)]
        other = self.residual(scope)
        given += [] if other is None else [other]
        scope.bind(group.output, f"{run}({', '.join(given)})")


def depthwise_kernels(group: LibraryGroup, window: Sliding) -> list[TritonDepthwise]:
    """The kernels for a group, if it is a depthwise convolution."""
    depth = window.source[1]
    is_depthwise = window.groups == depth == window.result[1] and window.dilations == (1, 1)
    return [TritonDepthwise(group, window, tile=tile) for tile in TILES] if is_depthwise else []


def _depth(window: Sliding) -> int:
    return next((depth for depth in DEPTHS if window.source[1] % depth == 0), DEPTHS[1])


def _kernel(one: TritonDepthwise) -> str:
    more = "".join(f"{name}, " for name in given_names(one.group))
    head = f"def NAME(x, taps, {more}y, H, W, C, OH, OW, ROWS: tl.constexpr, DEPTH: tl.constexpr):"
    columns = one.tile.columns
    (_, width), (down, right), (top, left, *_) = (
        one.window.kernel,
        one.window.strides,
        one.window.pads,
    )
    body = [
        f"across = tl.cdiv(OW, {columns})",
        "place = tl.program_id(0) // across",
        f"column = tl.program_id(0) % across * {columns}",
        "rows = place % tl.cdiv(OH, ROWS) * ROWS + tl.arange(0, ROWS)",
        "image = (place // tl.cdiv(OH, ROWS)).to(tl.int64)",
        "c = tl.program_id(1) * DEPTH + tl.arange(0, DEPTH)",
        f"first = column * {right} - {left}",
        "x += image * H * W * C",
        *(f"sum_{i} = tl.zeros((ROWS, DEPTH), tl.float32)" for i in range(columns)),
        f"for k in range({one.window.kernel[0]}):",
        *indented(
            [
                f"at = rows * {down} + (k - {top})",
                "known = ((at >= 0) & (at < H) & (rows < OH))[:, None] & (c < C)[None, :]",
                "line = x + (at * W)[:, None] * C + c[None, :]",
                *(_tap(i, width) for i in range(width)),
                *(text for j in range(right * (columns - 1) + width) for text in _column(j, one)),
            ]
        ),
        *_end(one),
    ]
    return "\n".join(["@triton.jit", head, *indented(body)])


def _tap(index: int, width: int) -> str:
    loaded = f"tl.load(taps + (k * {width} + {index}) * C + c, mask=c < C, other=0.0)"
    return f"tap_{index} = {loaded}.to(tl.float32)[None, :]"


def _column(j: int, one: TritonDepthwise) -> list[str]:
    """A column of pixels, and what it adds to the results that it belongs to."""
    right, width = one.window.strides[1], one.window.kernel[1]
    mask = f"known & (first + {j} >= 0) & (first + {j} < W)"
    read = f"v = tl.load(line + (first + {j}) * C, mask={mask}, other=0.0).to(tl.float32)"
    used = [i for i in range(one.tile.columns) if 0 <= j - right * i < width]
    return [read, *(f"sum_{i} += v * tap_{j - right * i}" for i in used)] if used else []


def _end(one: TritonDepthwise) -> list[str]:
    group = one.group
    lines = [
        "out = image * OH * OW * C + (rows * OW)[:, None] * C + c[None, :]",
        "kept = (rows < OH)[:, None] & (c < C)[None, :]",
    ]
    if group.bias is not None:
        lines.append(
            "shift = tl.load(bias + c, mask=c < C, other=0.0).to(tl.float32)[None, :]",
        )
    for i in range(one.tile.columns):
        place = f"out + (column + {i}) * C"
        mask = f"mask=kept & (column + {i} < OW)"
        if group.bias is not None:
            lines.append(f"sum_{i} += shift")
        if group.residual is not None:
            lines.append(
                f"sum_{i} += tl.load(residual + {place}, {mask}, other=0.0).to(tl.float32)"
            )
        lines += activated(f"sum_{i}", group.activation)
        lines.append(f"tl.store(y + {place}, sum_{i}, {mask})")
    return lines


def _launch(one: TritonDepthwise, kernel: str) -> str:
    window, tile = one.window, one.tile
    names = given_names(one.group)
    depth = _depth(window)
    (top, left, bottom, right) = window.pads
    warps = max(1, tile.rows * depth // (WARP * tile.lanes))
    programs = f"n * triton.cdiv(oh, {tile.rows}) * triton.cdiv(ow, {tile.columns})"
    operands = ", ".join(("x", "taps", *names, "y"))
    sizes = f"h, width, c, oh, ow, {tile.rows}, {depth}"
    body = [
        "n, c, h, width = x.shape",
        f"oh = (h + {top + bottom - window.kernel[0]}) // {window.strides[0]} + 1",
        f"ow = (width + {left + right - window.kernel[1]}) // {window.strides[1]} + 1",
        "y = torch.empty((n, oh, ow, c), dtype=x.dtype, device=x.device)",
        f"grid = ({programs}, triton.cdiv(c, {depth}))",
        f"{kernel}[grid]({operands}, {sizes}, num_warps={warps})",
        "return y.permute(0, 3, 1, 2)",
    ]
    return "\n".join([f"def NAME({', '.join(('x', 'taps', *names))}):", *indented(body)])
