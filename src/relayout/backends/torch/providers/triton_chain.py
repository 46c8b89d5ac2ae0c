"""Two products of the same rows, the second of what the first gives, as one kernel in Triton.

Where tensors are long and matrices small, as in the first stages of networks of images, writing
what is between two products and reading it again takes longer than either product. A program
computes some rows of it, some columns at a time, and multiplies them at once; it stores them only
if something else reads them too. A product that is added to the first is computed with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from relayout.backends.torch.program.scope import Scope
from relayout.backends.torch.program.statements import indented
from relayout.backends.torch.providers.chains import ProductChain
from relayout.backends.torch.providers.library_group import LibraryGroup
from relayout.backends.torch.providers.orders import LAST, Order, in_order
from relayout.backends.torch.providers.triton_text import activated, kernel_named, power_of

KernelOperand: TypeAlias = tuple[str, str]
"""A parameter of a kernel, and the expression that is given for it."""

HALF = 2
"""Bytes of a number."""


@dataclass(frozen=True, slots=True)
class ChainTile:
    """The rows of a program, and the columns between the products that it has at a time."""

    rows: int
    columns: int
    warps: int


TILES = (ChainTile(128, 64, 8), ChainTile(128, 32, 8))
"""For bottlenecks of a ResNet on an H200 one of these was the fastest wherever any was faster than
libraries: of 64 and 128 rows, 32 to 128 columns, 4 and 8 warps, one to three stages."""
MOST_STAGES = 3


@dataclass(frozen=True, slots=True)
class TritonChain:
    """All steps of a chain as one kernel."""

    chain: ProductChain
    tile: ChainTile
    stages: int

    @property
    def name(self) -> str:
        return f"triton chain {self.tile.rows}x{self.tile.columns}"

    def reads_in(self, _value: ir.Value) -> Order:
        return LAST

    def writes_in(self, _value: ir.Value) -> Order:
        return LAST

    def write(self, _nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        chain = self.chain
        given = _given(chain, scope)
        names = [name for name, _ in given]
        kernel = kernel_named("chain", _kernel(self, names), scope.draft)
        run = scope.draft.function("run_chain", _launch(self, names, kernel))
        results = scope.let("results", f"{run}({', '.join(text for _, text in given)})")
        scope.bind(chain.second.output, f"{results}[0]")
        if chain.is_middle_kept:
            scope.bind(chain.first.output, f"{results}[1]")


def chain_kernels(chain: ProductChain, memory: int) -> list[TritonChain]:
    """The kernels whose tiles fit into the memory that the threads of a program share."""
    found = []
    for tile in TILES:
        stages = [n for n in range(MOST_STAGES, 0, -1) if _shared(chain, tile, n) <= memory]
        found += [TritonChain(chain, tile, n) for n in stages[:1]]
    return found


def _shared(chain: ProductChain, tile: ChainTile, stages: int) -> int:
    """Bytes that the tiles of a program take, of what is read in a loop once for each stage."""
    depths = sum(power_of(group.depth) for group in chain.factors)
    ahead = depths + power_of(chain.second.width)
    ahead += tile.rows * (chain.first.residual is not None and chain.added is None)
    return HALF * (tile.rows * depths + stages * tile.columns * ahead)


# -- what a kernel is given ------------------------------------------------------------------------


def _given(chain: ProductChain, scope: Scope) -> list[KernelOperand]:
    """The operands in the order of the parameters."""
    given: list[KernelOperand] = []
    roles = {"added": chain.added, "first": chain.first, "second": chain.second}
    for role, group in roles.items():
        if group is None:
            continue
        if role != "second":
            given.append((f"{role}_x", _rows(group.source, group, scope)))
        order = "flatten(1)" if group.is_conv else "t().contiguous()"
        matrix = f"{scope.tensor(group.weight)}.{order}"
        given.append((f"{role}_matrix", scope.draft.prepare(f"{role}_matrix", matrix)))
        if group.bias is not None:
            given.append((f"{role}_bias", scope.tensor(group.bias)))
        if group.residual is not None and not (role == "first" and chain.added is not None):
            given.append((f"{role}_residual", _rows(group.residual, group, scope)))
    return given


def _rows(value: ir.Value, group: LibraryGroup, scope: Scope) -> str:
    """A tensor whose last axis is that of the channels."""
    if not group.is_conv:
        return scope.tensor(value)
    return f"{in_order(value, LAST, {}, scope)}.permute(0, 2, 3, 1)"


# -- the kernel ------------------------------------------------------------------------------------

# A loop that states its stages reads ahead what is added too, not only what is multiplied.
KERNEL = """\
@triton.jit
def NAME({names}, M):
    m = (tl.program_id(0) * {rows} + tl.arange(0, {rows})).to(tl.int64)
    n, o = tl.arange(0, {columns}), tl.arange(0, {wide})
{before}
    total = tl.zeros(({rows}, {wide}), tl.float32)
    for start in tl.range(0, {width}, {columns}, num_stages={stages}):
        c = start + n
        part = tl.zeros(({rows}, {columns}), tl.float32)
{inside}
        total = tl.dot(middle, matrix, total)
{end}
    tl.store(z + m[:, None] * {written} + o[None, :], total, mask={kept})"""


def _kernel(one: TritonChain, names: Sequence[str]) -> str:
    chain, tile = one.chain, one.tile
    width, written = chain.first.width, chain.second.width
    results = ["z", *(["y"] if chain.is_middle_kept else [])]
    columns = [] if width % tile.columns == 0 else [f"(c < {width})"]
    outputs = [] if power_of(written) == written else [f"(o < {written})"]
    across = f"m[:, None] * {width} + c[None, :]"
    seen = _all("(m < M)[:, None]", *(f"{each}[None, :]" for each in columns))
    kept = _all("(m < M)[:, None]", *(f"{each}[None, :]" for each in outputs))
    before, inside = [], []
    for role, group in chain.factors_by_role.items():
        before += _operand(role, group)
        inside += _product(role, group, columns)
    if "first_residual" in names:
        text = f"tl.load(first_residual + {across}, mask={seen}, other=0.0)"
        inside.append(f"part += {text}.to(tl.float32)")
    inside += [_bias(name, "part", "c", columns) for name in names if _is_bias_of_sum(name)]
    inside += activated("part", chain.first.activation)
    inside.append("middle = part.to(z.dtype.element_ty)")
    inside += [f"tl.store(y + {across}, middle, mask={seen})"] * chain.is_middle_kept
    inside.append(
        _loaded(
            "matrix",
            f"second_matrix + o[None, :] * {width} + c[:, None]",
            [*(f"{each}[:, None]" for each in columns), *(f"{each}[None, :]" for each in outputs)],
        )
    )
    end = [_bias(name, "total", "o", outputs) for name in names if name == "second_bias"]
    if "second_residual" in names:
        text = f"tl.load(second_residual + m[:, None] * {written} + o[None, :], mask={kept}"
        end.append(f"total += {text}, other=0.0).to(tl.float32)")
    end += activated("total", chain.second.activation)
    return KERNEL.format(
        names=", ".join((*names, *results)),
        rows=tile.rows,
        columns=tile.columns,
        wide=power_of(written),
        stages=one.stages,
        width=width,
        written=written,
        before="\n".join(indented(before)),
        inside="\n".join(indented(indented(inside))),
        end="\n".join(indented(end)),
        kept=kept,
    )


def _operand(role: str, group: LibraryGroup) -> list[str]:
    """The rows of one factor, all of them at once."""
    depth, name = group.depth, f"{role}_k"
    known = ["(m < M)[:, None]", *_beyond(name, depth, "[None, :]")]
    return [
        f"{name} = tl.arange(0, {power_of(depth)})",
        _loaded(f"{role}_rows", f"{role}_x + m[:, None] * {depth} + {name}[None, :]", known),
    ]


def _product(role: str, group: LibraryGroup, columns: Sequence[str]) -> list[str]:
    """Some columns of one factor's product."""
    depth, name = group.depth, f"{role}_k"
    known = [*_beyond(name, depth, "[:, None]"), *(f"{each}[None, :]" for each in columns)]
    at = f"{role}_matrix + c[None, :] * {depth} + {name}[:, None]"
    return [
        _loaded(f"{role}_part", at, known),
        f"part = tl.dot({role}_rows, {role}_part, part)",
    ]


def _beyond(name: str, depth: int, axes: str) -> list[str]:
    return [] if power_of(depth) == depth else [f"({name} < {depth}){axes}"]


def _is_bias_of_sum(name: str) -> bool:
    return name in {"first_bias", "added_bias"}


def _bias(name: str, total: str, index: str, known: Sequence[str]) -> str:
    mask = f", mask={known[0]}, other=0.0" if known else ""
    return f"{total} += tl.load({name} + {index}{mask}).to(tl.float32)[None, :]"


def _loaded(name: str, at: str, known: Sequence[str]) -> str:
    mask = f", mask={_all(*known)}, other=0.0" if known else ""
    return f"{name} = tl.load({at}{mask})"


def _all(*conditions: str) -> str:
    return " & ".join(conditions)


def _launch(one: TritonChain, names: Sequence[str], kernel: str) -> str:
    chain, tile = one.chain, one.tile
    lead = names[0]
    sizes = {"z": chain.second.width}
    if chain.is_middle_kept:
        sizes["y"] = chain.first.width
    order = ".permute(0, 3, 1, 2)" if chain.first.is_conv else ""
    tensors = [name for name in names if name.endswith(("_x", "_residual"))]
    settings = f"num_warps={tile.warps}, num_stages={one.stages}"
    body = [
        f"count = {lead}.numel() // {lead}.shape[-1]",
        *(_empty(name, size, lead) for name, size in sizes.items()),
        *(f"{name} = {name}.contiguous()" for name in tensors),
        f"grid = (triton.cdiv(count, {tile.rows}),)",
        f"{kernel}[grid]({', '.join((*names, *sizes))}, count, {settings})",
        f"return [{', '.join(f'{name}{order}' for name in sizes)}]",
    ]
    return "\n".join([f"def NAME({', '.join(names)}):", *indented(body)])


def _empty(name: str, size: int, like: str) -> str:
    """A tensor of as many rows as another has."""
    shape = f"(*{like}.shape[:-1], {size})"
    return f"{name} = torch.empty({shape}, dtype={like}.dtype, device={like}.device)"
