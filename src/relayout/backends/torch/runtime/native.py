"""Runs steps of C++ kernels over tensors stored channels last; copied into written modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from relayout.backends.torch.runtime.native_library import (
    NativeFailure,
    NativeLibrary,
    NativeSource,
)
from relayout.backends.torch.runtime.native_weights import native_weight


def large_tensor(count: int) -> Any:
    """Floats in pages as large as the system has them, for weights are read from end to end."""
    import ctypes

    page, advice = 1 << 21, 14
    tensor = torch.empty(count + page // 2, dtype=torch.float32)
    start = -tensor.data_ptr() % page // 4
    view = tensor[start : start + count]
    libc = ctypes.CDLL(None)
    if hasattr(libc, "madvise"):
        libc.madvise(ctypes.c_void_p(view.data_ptr()), ctypes.c_size_t(4 * count), advice)
    return view.zero_()


def row_table(step: dict[str, Any]) -> Any:
    """Where the rows of a convolution as a product begin in its operand."""
    image, line, depth = step["height"] * step["width"], step["width"], step["depth"]
    n = torch.arange(step["batch"]).reshape(-1, 1, 1) * image
    y = torch.arange(step["out_height"]).reshape(1, -1, 1) * step["stride_down"] * line
    x = torch.arange(step["out_width"]).reshape(1, 1, -1) * step["stride"]
    return ((n + y + x) * depth).reshape(-1).to(torch.int32)


class PackedWeights:
    """The weights of some steps in one piece of memory, in the orders of the kernels."""

    def __init__(
        self, steps: Sequence[dict[str, Any]], weights: dict[str, Any], constants: dict[str, int]
    ) -> None:
        columns, deepest = constants["COLUMNS"], constants["DEEPEST"]
        packed: dict[tuple[str, str], Any] = {}
        for step in steps:
            for form, name in (step["weight"], ("vector", step["bias"])):
                if name and (form, name) not in packed:
                    packed[form, name] = native_weight(form, weights[name], columns, deepest)
        line, overread = constants["LINE"], constants["OVERREAD"]
        sizes = [-(-(tensor.numel() + overread) // line) * line for tensor in packed.values()]
        self.data = large_tensor(sum(sizes) + 4 * line)
        self.addresses: dict[tuple[str, str], int] = {}
        at = 0
        for (key, tensor), size in zip(packed.items(), sizes, strict=True):
            self.data[at : at + tensor.numel()] = tensor
            self.addresses[key] = self.data.data_ptr() + 4 * at
            at += size

    def of(self, step: dict[str, Any]) -> dict[str, int | None]:
        """The addresses of what a step reads of them."""
        form, name = step["weight"]
        return {
            "weight": self.addresses.get((form, name)),
            "bias": self.addresses.get(("vector", step["bias"])),
        }


class NativeProgram:
    """Steps over one piece of memory, run by a team of threads.

    Numbers that name memory are places in the arena; names are weights; an operand of the program
    is "input 0" and so on. Without a library the fallback does the same in torch.
    """

    def __init__(
        self,
        source: NativeSource,
        steps: Sequence[dict[str, Any]],
        arena: int,
        weights: dict[str, Any],
        ports: tuple[Sequence[str], Sequence[tuple[int, Sequence[int], bool]]],
        fallback: Callable[..., Any],
    ) -> None:
        self.fallback = fallback
        self.orders, self.results = ports
        self.library: Any = None
        library = source.library
        if isinstance(library, NativeFailure):
            library.report()
        else:
            self.library = library
            self._place(library, steps, arena, weights)

    def _place(
        self,
        library: NativeLibrary,
        steps: Sequence[dict[str, Any]],
        arena: int,
        weights: dict[str, Any],
    ) -> None:
        """Bring weights into the order of the kernels, and steps into the form of the library."""
        import ctypes

        self.weights = PackedWeights(steps, weights, library.constants)
        self.arena = large_tensor(arena + 4 * library.constants["LINE"])
        self.tables = [row_table(step) if step["table"] else None for step in steps]
        self.steps = (library.step * len(steps))()
        self.copy = ctypes.memmove
        self.patches: list[tuple[Any, str, int]] = []
        for step, entry, table in zip(self.steps, steps, self.tables, strict=True):
            given = self.weights.of(entry)
            given["table"] = None if table is None else table.data_ptr()
            for name, kind in step._fields_:
                if name in given:
                    setattr(step, name, given[name])
                elif kind is ctypes.c_void_p:
                    self._point(step, name, entry[name])
                else:
                    setattr(step, name, entry[name])

    def _point(self, step: Any, name: str, place: int | str | None) -> None:
        if isinstance(place, str):
            self.patches.append((step, name, int(place.split()[1])))
        elif place is not None:
            setattr(step, name, self.arena.data_ptr() + 4 * place)

    def __call__(self, w: Any, *operands: Any) -> Any:
        if self.library is None:
            with torch.inference_mode():
                return self.fallback(w, *operands)
        given = [
            x.contiguous(memory_format=torch.channels_last)
            if order == "last" and x.dim() == 4
            else x.contiguous()
            for x, order in zip(operands, self.orders, strict=True)
        ]
        with self.library.lock:
            for step, name, operand in self.patches:
                setattr(step, name, given[operand].data_ptr())
            self.perform()
            return tuple(self._result(*result) for result in self.results)

    def perform(self) -> None:
        """All steps, over what lies in memory."""
        self.library.run(self.steps, torch.get_num_threads())

    def _result(self, place: int, shape: Sequence[int], is_image: bool) -> Any:
        """A copy that is not made by the threads of torch, which stay awake and disturb ours."""
        result = self.arena.new_empty(shape)
        self.copy(result.data_ptr(), self.arena.data_ptr() + 4 * place, result.nbytes)
        return result.permute(0, 3, 1, 2) if is_image else result
