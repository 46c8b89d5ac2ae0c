"""A product with a constant matrix, bias, residual and any activation, as one kernel in Triton.

Where the product itself takes no longer than reading and writing its tensors, what libraries leave
to further kernels is most of the time.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from relayout.backends.torch.program.scope import Scope
from relayout.backends.torch.program.statements import indented
from relayout.backends.torch.providers.conv_form import ConvForm
from relayout.backends.torch.providers.library_group import LibraryGroup
from relayout.backends.torch.providers.orders import FIRST, Order
from relayout.backends.torch.providers.triton_text import activated, given_names, kernel_named
from relayout.backends.torch.providers.window import Sliding


@dataclass(frozen=True, slots=True)
class ProductTile:
    """What one program computes at a time, by how many warps, and how far ahead it reads."""

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int


TILES = (ProductTile(128, 64, 32, 4, 3), ProductTile(64, 64, 32, 4, 3))
"""With two larger sizes the best of 148 products on an H200 took 0.4 % less on the mean."""


@dataclass(frozen=True, slots=True)
class TritonProduct:
    """A product with the rest of its group."""

    group: LibraryGroup
    tile: ProductTile
    reads: Order = FIRST
    """Its rows are stored as they are."""

    @property
    def name(self) -> str:
        return _name(self.tile)

    def write(self, _nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        group = self.group
        run = _written(group, self.tile, scope)
        matrix = scope.draft.prepare(
            f"{group.output.name}_matrix", f"{scope.tensor(group.weight)}.contiguous()"
        )
        given = [scope.tensor(group.source), matrix]
        given += [] if group.bias is None else [scope.tensor(group.bias)]
        given += [] if group.residual is None else [scope.tensor(group.residual)]
        scope.bind(group.output, f"{run}({', '.join(given)})")


@dataclass(frozen=True, slots=True)
class TritonPixels(ConvForm):
    """A pointwise convolution, which is a product of every pixel, with the rest of its group."""

    tile: ProductTile = TILES[0]

    @property
    def kind(self) -> str:
        return _name(self.tile)

    def write(self, _nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        group = self.group
        launch = _written(group, self.tile, scope)
        run = scope.draft.function("product_of_pixels", _pixels(group, launch))
        matrix = f"{scope.tensor(group.weight)}.flatten(1).t().contiguous()"
        given = [self.source(scope), scope.draft.prepare(f"{group.output.name}_matrix", matrix)]
        given += [] if group.bias is None else [scope.tensor(group.bias)]
        other = self.residual(scope)
        given += [] if other is None else [other]
        scope.bind(group.output, f"{run}({', '.join(given)})")


def product_kernels(group: LibraryGroup) -> list[TritonProduct]:
    return [TritonProduct(group, tile) for tile in TILES]


def pixel_kernels(group: LibraryGroup, window: Sliding) -> list[TritonPixels]:
    return [TritonPixels(group, window, tile=tile) for tile in TILES]


def _name(tile: ProductTile) -> str:
    return f"triton {tile.rows}x{tile.columns}x{tile.depth}"


def _written(group: LibraryGroup, tile: ProductTile, scope: Scope) -> str:
    """The name of a function of rows and a matrix."""
    kernel = kernel_named("product", _kernel(group), scope.draft)
    return scope.draft.function("run_product", _launch(group, tile, kernel))


KERNEL = """\
@triton.jit
def NAME(
    x, matrix, {more}y, M, N, K,
    ALL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    # Programs that run at the same time share rows and columns.
    across, down = tl.cdiv(N, BN), tl.cdiv(M, BM)
    band = tl.program_id(0) // (8 * across) * 8
    tall = tl.minimum(down - band, 8)
    within = tl.program_id(0) % (8 * across)
    m = ((band + within % tall) * BM + tl.arange(0, BM)).to(tl.int64)
    n = within // tall * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    left = x + m[:, None] * K + k[None, :]
    right = matrix + k[:, None] * N + n[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        if ALL:
            a = tl.load(left, mask=m[:, None] < M, other=0.0)
            b = tl.load(right, mask=n[None, :] < N, other=0.0)
        else:
            a = tl.load(left, mask=(m[:, None] < M) & (k[None, :] < K - i * BK), other=0.0)
            b = tl.load(right, mask=(k[:, None] < K - i * BK) & (n[None, :] < N), other=0.0)
        total = tl.dot(a, b, total)
        left += BK
        right += BK * N
    kept = (m[:, None] < M) & (n[None, :] < N)
    out = m[:, None] * N + n[None, :]
{end}
    tl.store(y + out, total, mask=kept)"""

BIAS = "total += tl.load(bias + n, mask=n < N, other=0.0).to(tl.float32)[None, :]"
RESIDUAL = "total += tl.load(residual + out, mask=kept, other=0.0).to(tl.float32)"


def _kernel(group: LibraryGroup) -> str:
    more = "".join(f"{name}, " for name in given_names(group))
    end = [BIAS] * (group.bias is not None) + [RESIDUAL] * (group.residual is not None)
    end += activated("total", group.activation)
    return KERNEL.format(more=more, end="\n".join(indented(end)))


def _launch(group: LibraryGroup, tile: ProductTile, kernel: str) -> str:
    names = given_names(group)
    flat = [f"{name} = {name}.reshape(-1, columns)" for name in names if name == "residual"]
    operands = ", ".join(("rows", "matrix", *names, "y"))
    sizes = f"depth % {tile.depth} == 0, {tile.rows}, {tile.columns}, {tile.depth}"
    settings = f"num_warps={tile.warps}, num_stages={tile.stages}"
    body = [
        "depth, columns = matrix.shape",
        "rows = x.reshape(-1, depth)",
        *flat,
        "count = rows.shape[0]",
        "y = torch.empty((*x.shape[:-1], columns), dtype=x.dtype, device=x.device)",
        f"grid = (triton.cdiv(count, {tile.rows}) * triton.cdiv(columns, {tile.columns}),)",
        f"{kernel}[grid]({operands}, count, columns, depth, {sizes}, {settings})",
        "return y",
    ]
    return "\n".join([f"def NAME({', '.join(('x', 'matrix', *names))}):", *indented(body)])


def _pixels(group: LibraryGroup, launch: str) -> str:
    """The product for tensors whose channels come second and are stored last."""
    names = given_names(group)
    body = [
        "x = x.permute(0, 2, 3, 1)",
        *("residual = residual.permute(0, 2, 3, 1)" for name in names if name == "residual"),
        f"return {launch}({', '.join(('x', 'matrix', *names))}).permute(0, 3, 1, 2)",
    ]
    return "\n".join([f"def NAME({', '.join(('x', 'matrix', *names))}):", *indented(body)])
