"""Which sizes to try for the open dimensions of a model."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from relayout.verify.equations import SolvedLengths
    from relayout.verify.interface import Port
    from relayout.verify.verdict import NumericOptions

Binding = dict[str, int]

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
# What models are commonly built for. The first is large enough that strided layers leave more
# than one element an axis; then come smaller ones, text lines, crops, pictures, audio windows.
SIZES = (64, 32, 16, 8, 48, 96, 128, 224, 256, 320, 512, 640, 1024, 1536, 4000, 16000)
MOST_FIXED = 8
RANKS = (4, 3, 2, 5, 1, 0)
LARGEST_INPUT = 1 << 22


@dataclass(frozen=True)
class OpenDim:
    """A named size, and the first axis that has it."""

    name: str
    axis: int


def ports_to_try(ports: Sequence[Port], options: NumericOptions) -> Iterator[tuple[Port, ...]]:
    """The inputs as the caller described them; several ranks where one is not known."""
    described = [_described(port, options) for port in ports]
    if all(port.dims is not None for port in described):
        yield tuple(described)
        return
    for rank in RANKS:
        yield tuple(_with_rank(port, rank) for port in described)


def binding_groups(ports: Sequence[Port], lengths: SolvedLengths) -> list[list[Binding]]:
    """Groups of sizes, one of each of which is to run: different primes, large sizes, all 1, all 2.

    `lengths`: what some of them must be, such as a total of past and new ones.
    """
    dims = [dim for dim in open_dims(ports) if dim.name not in lengths.known]
    ones, twos = ({dim.name: size for dim in dims} for size in (1, 2))
    seen: list[Binding] = []
    groups = []
    large = chain(_large(dims), _as_fixed(dims, ports))
    for candidates in (_different(dims), large, [ones], [twos]):
        group = []
        for chosen in candidates:
            binding = _completed(chosen, lengths, ports)
            if binding not in seen and binding is not None and _fits(ports, binding):
                seen.append(binding)
                group.append(binding)
        groups.append(group)
    return [group for group in groups if group]


def _completed(chosen: Binding, lengths: SolvedLengths, ports: Sequence[Port]) -> Binding | None:
    """A binding with the lengths that follow from it, in the order of the inputs."""
    completed = lengths.completed(chosen)
    found = {dim.name: completed[dim.name] for dim in open_dims(ports)}
    return None if min(found.values(), default=0) < 0 else found


def open_dims(ports: Sequence[Port]) -> tuple[OpenDim, ...]:
    axes: dict[str, int] = {}
    for port in ports:
        for axis, name in port.free.items():
            axes.setdefault(name, axis)
    return tuple(OpenDim(name, axis) for name, axis in axes.items())


def shape_under(port: Port, binding: Binding) -> tuple[int, ...]:
    return tuple(dim if isinstance(dim, int) else binding[dim] for dim in port.dims or ())


def _described(port: Port, options: NumericOptions) -> Port:
    if port.name in options.shapes:
        return replace(port, dims=options.shapes[port.name])
    if port.dims is None:
        return port
    return replace(port, dims=tuple(options.dims.get(str(dim), dim) for dim in port.dims))


def _with_rank(port: Port, rank: int) -> Port:
    if port.dims is not None:
        return port
    return replace(port, dims=tuple(f"{port.name}[{axis}]" for axis in range(rank)))


def _different(dims: Sequence[OpenDim]) -> Iterator[Binding]:
    """Different sizes show which axis is which; inputs may need the same size at the same axis."""
    yield {dim.name: PRIMES[i % len(PRIMES)] for i, dim in enumerate(dims)}
    yield {dim.name: PRIMES[dim.axis % len(PRIMES)] for dim in dims}


def _large(dims: Sequence[OpenDim]) -> Iterator[Binding]:
    for size in SIZES:
        yield _sized(dims, batch=2, size=size, step=size // 2)
        yield _sized(dims, batch=1, size=size, step=size // 2)
        yield _sized(dims, batch=1, size=size, step=0)
    for size in SIZES:
        yield {dim.name: size for dim in dims}


def _as_fixed(dims: Sequence[OpenDim], ports: Sequence[Port]) -> Iterator[Binding]:
    """The sizes of fixed axes, since some models run only where an open one is as long."""
    fixed = {size for port in ports for size in port.dims or () if isinstance(size, int)}
    for size in sorted(size for size in fixed if size > 0)[:MOST_FIXED]:
        yield {dim.name: size for dim in dims}


def _sized(dims: Sequence[OpenDim], batch: int, size: int, step: int) -> Binding:
    """Axis 0 gets the batch, the first open axis after it the size, each later one a step more."""
    later = sorted({dim.axis for dim in dims if dim.axis > 0})
    by_axis = {axis: size + step * i for i, axis in enumerate(later)}
    return {dim.name: by_axis.get(dim.axis, batch) for dim in dims}


def _fits(ports: Sequence[Port], binding: Binding) -> bool:
    """Whether a binding is worth its memory; models of no open dims have no choice."""
    elements = (math.prod(shape_under(port, binding)) for port in ports if port.free)
    return max(elements, default=0) <= LARGEST_INPUT or max(binding.values()) <= max(PRIMES)
