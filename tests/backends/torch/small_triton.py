"""A stand-in for Triton: runs kernels program by program on tensors of a CPU.

It knows what our kernels use, and is stricter than a GPU: an access outside of a tensor fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

_place: list[Any] = [0, 0]


class Pointer:
    """Places in a tensor, as it lies in memory."""

    def __init__(self, data: Any, at: Any) -> None:
        self.data, self.at = data, at
        self.dtype = SimpleNamespace(element_ty=data.dtype)

    def __add__(self, offset: Any) -> Pointer:
        return Pointer(self.data, self.at + offset)


def _pointer(tensor: Any) -> Pointer:
    flat = torch.as_strided(tensor, (tensor.numel(),), (1,), tensor.storage_offset())
    return Pointer(flat, torch.tensor(0))


class Kernel:
    def __init__(self, function: Callable[..., None]) -> None:
        self.function = function

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*operands: Any, num_warps: int, num_stages: int = 1) -> None:
            assert num_warps & (num_warps - 1) == 0
            assert num_stages > 0
            given = [_pointer(x) if isinstance(x, torch.Tensor) else x for x in operands]
            for place in itertools.product(*map(range, grid)):
                _place[: len(place)] = [torch.tensor(each) for each in place]
                self.function(*given)

        return launch


def _checked(pointer: Pointer, mask: Any) -> tuple[Any, Any]:
    at, kept = torch.broadcast_tensors(pointer.at, mask)
    inside = (at >= 0) & (at < pointer.data.numel())
    assert bool((inside | ~kept).all()), "an access outside of the tensor"
    return at, kept


_ALL = torch.tensor(True)


def _load(pointer: Pointer, mask: Any = _ALL, other: float = 0.0) -> Any:
    at, kept = _checked(pointer, mask)
    return torch.where(kept, pointer.data[at * kept], other)


def _store(pointer: Pointer, value: Any, mask: Any) -> None:
    at, kept = _checked(pointer, mask)
    pointer.data[at[kept]] = value.expand(kept.shape)[kept].to(pointer.data.dtype)


def _power_of_two(first: int, last: int) -> Any:
    assert last & (last - 1) == 0, "Triton takes powers of two"
    return torch.arange(first, last)


def _range(first: int, last: int, step: int, *, num_stages: int) -> range:
    assert num_stages > 0
    return range(first, last, step)


def _cdiv(length: Any, part: int) -> Any:
    return (length + part - 1) // part


def modules() -> dict[str, ModuleType]:
    """`triton` and `triton.language`."""
    triton, language = ModuleType("triton"), ModuleType("triton.language")
    vars(triton).update(jit=Kernel, cdiv=_cdiv, language=language)
    vars(language).update(
        constexpr=int,
        float32=torch.float32,
        int64=torch.int64,
        program_id=_place.__getitem__,
        arange=_power_of_two,
        range=_range,
        zeros=lambda shape, dtype: torch.zeros(shape, dtype=dtype),
        cdiv=_cdiv,
        load=_load,
        store=_store,
        dot=lambda a, b, total: total + a.float() @ b.float(),
        abs=torch.abs,
        exp=torch.exp,
        where=torch.where,
        maximum=lambda x, y: torch.maximum(x, torch.as_tensor(y)),
        minimum=lambda x, y: torch.minimum(x, torch.as_tensor(y)),
    )
    return {"triton": triton, "triton.language": language}
