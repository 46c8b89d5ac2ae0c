"""A grouped convolution, with bias, residual and activation, as one kernel in Triton.

Libraries run groups of few channels far below what memory allows. Here a program computes some
pixels of one block of channels as a sum of products, one for each tap. Groups of few channels share
a block, whose matrices have zeros between them: tensor cores have the time to multiply by zeros
while pixels are read.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from relayout.backends.torch.program.scope import Scope
from relayout.backends.torch.program.statements import indented
from relayout.backends.torch.providers.conv_form import ConvForm
from relayout.backends.torch.providers.library_group import LibraryGroup
from relayout.backends.torch.providers.triton_text import (
    activated,
    given_names,
    kernel_named,
    power_of,
)
from relayout.backends.torch.providers.window import Sliding
from relayout.backends.torch.runtime.convolution import grouped_taps

MOST = 128
"""Beyond so many channels a group is worth a kernel of a library."""


@dataclass(frozen=True, slots=True)
class GroupedTile:
    """How many pixels a program computes, and how many channels a block should have."""

    pixels: int
    channels: int
    warps: int = 4
    stages: int = 3


TILES = (GroupedTile(64, 32), GroupedTile(128, 32), GroupedTile(64, 64), GroupedTile(128, 64))


@dataclass(frozen=True, slots=True)
class TritonGrouped(ConvForm):
    """The whole group of nodes, channels last."""

    tile: GroupedTile = TILES[0]

    @property
    def kind(self) -> str:
        return f"triton {self.tile.pixels} by {self.tile.channels}"

    @property
    def blocks(self) -> int:
        """How many blocks the channels are cut into."""
        return self.window.groups // _joined(self.window, self.tile)

    def write(self, _nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        group, draft = self.group, scope.draft
        kernel = kernel_named("grouped", _kernel(self), draft)
        run = draft.function("run_grouped", _launch(self, kernel))
        weight, helper = scope.tensor(group.weight), draft.helper(grouped_taps)
        taps = draft.prepare(
            f"{group.output.name}_taps", f"{helper}({weight}, {self.window.groups}, {self.blocks})"
        )
        given = [self.source(scope), taps]
        given += [] if group.bias is None else [scope.tensor(group.bias)]
        other = self.residual(scope)
        given += [] if other is None else [other]
        scope.bind(group.output, f"{run}({', '.join(given)})")


def grouped_kernels(group: LibraryGroup, window: Sliding) -> list[TritonGrouped]:
    """The kernels for a group of nodes, if its convolution has groups of several channels."""
    read, written = (shape[1] // window.groups for shape in (window.source, window.result))
    if window.groups == 1 or max(read, written) > MOST or read == 1:
        return []
    # Tiles that come to the same number of groups in a block differ in their pixels alone.
    distinct = {(tile.pixels, _joined(window, tile)): tile for tile in reversed(TILES)}
    return [TritonGrouped(group, window, tile=tile) for tile in reversed(distinct.values())]


def _joined(window: Sliding, tile: GroupedTile) -> int:
    """How many groups share a block: as many as fit, of those that divide all groups."""
    width = max(window.source[1], window.result[1]) // window.groups
    most = max(1, tile.channels // width)
    return next(count for count in range(most, 0, -1) if window.groups % count == 0)


KERNEL = """\
@triton.jit
def NAME(x, taps, {more}y, P, H, W, OH, OW, BM: tl.constexpr):
    block = tl.program_id(0) % {blocks}
    p = (tl.program_id(0) // {blocks} * BM + tl.arange(0, BM)).to(tl.int64)
    k, n = tl.arange(0, {depth}), tl.arange(0, {width})
    row, column = p // OW % OH * {down} - {top}, p % OW * {right} - {left}
    image = p // (OW * OH)
    total = tl.zeros((BM, {width}), tl.float32)
    for tap in range({taps}):
        i = row + tap // {across} * {dilation_down}
        j = column + tap % {across} * {dilation_right}
        known = (p < P) & (i >= 0) & (i < H) & (j >= 0) & (j < W)
        pixel = ((image * H + i) * W + j) * {read} + block * {reads}
        seen = known[:, None] & (k < {reads})[None, :]
        a = tl.load(x + pixel[:, None] + k[None, :], mask=seen, other=0.0)
        line = ((block * {taps} + tap) * {reads} + k) * {writes}
        full = (k < {reads})[:, None] & (n < {writes})[None, :]
        b = tl.load(taps + line[:, None] + n[None, :], mask=full, other=0.0)
        total = tl.dot(a, b, total)
    kept = (p < P)[:, None] & (n < {writes})[None, :]
    out = p[:, None] * {written} + (block * {writes} + n)[None, :]
{end}
    tl.store(y + out, total, mask=kept)"""

BIAS = (
    "total += tl.load(bias + block * {writes} + n, mask=n < {writes}, other=0.0)"
    ".to(tl.float32)[None, :]"
)
RESIDUAL = "total += tl.load(residual + out, mask=kept, other=0.0).to(tl.float32)"


def _kernel(one: TritonGrouped) -> str:
    group, window = one.group, one.window
    reads, writes = (shape[1] // one.blocks for shape in (window.source, window.result))
    end = [BIAS.format(writes=writes)] * (group.bias is not None)
    end += [RESIDUAL] * (group.residual is not None)
    end += activated("total", group.activation)
    (down, right), (top, left, *_) = window.strides, window.pads
    return KERNEL.format(
        more="".join(f"{name}, " for name in given_names(group)),
        blocks=one.blocks,
        depth=power_of(reads),
        width=power_of(writes),
        down=down,
        right=right,
        top=top,
        left=left,
        taps=window.kernel[0] * window.kernel[1],
        across=window.kernel[1],
        dilation_down=window.dilations[0],
        dilation_right=window.dilations[1],
        read=window.source[1],
        written=window.result[1],
        reads=reads,
        writes=writes,
        end="\n".join(indented(end)),
    )


def _launch(one: TritonGrouped, kernel: str) -> str:
    window, tile = one.window, one.tile
    names = given_names(one.group)
    (top, left, bottom, right) = window.pads
    high, wide = (
        (length - 1) * dilation + 1
        for length, dilation in zip(window.kernel, window.dilations, strict=True)
    )
    operands = ", ".join(("x", "taps", *names, "y"))
    settings = f"num_warps={tile.warps}, num_stages={tile.stages}"
    body = [
        "n, _, h, width = x.shape",
        f"oh = (h + {top + bottom - high}) // {window.strides[0]} + 1",
        f"ow = (width + {left + right - wide}) // {window.strides[1]} + 1",
        f"y = torch.empty((n, oh, ow, {window.result[1]}), dtype=x.dtype, device=x.device)",
        "pixels = n * oh * ow",
        f"grid = (triton.cdiv(pixels, {tile.pixels}) * {one.blocks},)",
        f"{kernel}[grid]({operands}, pixels, h, width, oh, ow, {tile.pixels}, {settings})",
        "return y.permute(0, 3, 1, 2)",
    ]
    return "\n".join([f"def NAME({', '.join(('x', 'taps', *names))}):", *indented(body)])
