"""Runs steps of C++ kernels over tensors stored channels last; copied into written modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch


def native_library(source: str) -> Any:
    """The kernels, built for this machine and kept in a cache; None without a compiler."""
    import ctypes
    import hashlib
    import os
    import platform
    import shutil
    import subprocess
    import tempfile

    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        return None
    flags = "-O3 -march=native -fno-math-errno -fno-trapping-math -fno-ivopts"
    flags += " -std=c++17 -fPIC -shared -pthread"
    version = subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout
    machine = "".join(
        line
        for line in (
            Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
        ).splitlines()
        if line.startswith(("model name", "flags"))
    )
    parts = (source, flags, version.decode(errors="replace"), platform.machine(), machine)
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "relayout"
    folder = Path(os.environ.get("RELAYOUT_CACHE", home))
    library = folder / f"kernels-{key}.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            text, built = Path(scratch) / "kernels.cpp", Path(scratch) / "kernels.so"
            text.write_text(source)
            command = [compiler, *flags.split(), str(text), "-o", str(built)]
            if subprocess.run(command, capture_output=True, check=False).returncode != 0:
                return None
            built.replace(library)
    return ctypes.CDLL(str(library))


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


def shares(whole: int, count: int) -> list[int]:
    """A whole cut into parts of nearly equal size, as the library cuts it."""
    return [whole * (part + 1) // count - whole * part // count for part in range(count)]


def packed_matrix(matrix: Any, runs: int, columns: int, deepest: int) -> Any:
    """A matrix as the product reads it: by pass over its rows, then panels of some columns."""
    rows, width = matrix.shape
    panels = -(-width // columns)
    matrix = torch.nn.functional.pad(matrix, [0, panels * columns - width])
    cuts = [rows]
    if rows > deepest:
        length = rows // runs
        cuts = shares(length, -(-length // deepest)) * runs
    parts = [
        part.reshape(-1, panels, columns).transpose(0, 1).reshape(-1)
        for part in torch.split(matrix, cuts)
    ]
    return torch.cat(parts)


def winograd_weight(weight: Any, columns: int, is_small: bool) -> Any:
    """The filters of a 3x3 convolution, transformed: for each panel of columns 36 matrices.

    For small tiles there are 16: what a filter is at four of the six points that large ones have.
    """
    rows = [[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [0, 0, 24], [1, 2, 4], [1, -2, 4]]
    change = torch.tensor(rows[: 4 if is_small else 6], dtype=torch.float64) / 24
    filters = torch.einsum("ij,ocjk,lk->ilco", change, weight.double(), change).float()
    matrices = filters.flatten(0, 1)
    width = -weight.shape[0] % columns
    panels = torch.nn.functional.pad(matrices, [0, width]).unflatten(2, (-1, columns))
    return panels.permute(2, 0, 1, 3).reshape(-1)


def strassen_weight(matrix: Any, pixels: int, columns: int, deepest: int) -> Any:
    """A matrix by quarters and their sums: by slices of its rows, then panels of half its columns.

    A slice is some channels of one pixel of a window. For each panel of it there are seven blocks.
    """
    depth = len(matrix) // pixels
    parts = shares(depth // columns, -(-depth // (2 * deepest)))
    cuts = [columns * part for part in parts] * pixels
    return torch.cat([quarters(rows, columns) for rows in torch.split(matrix.double(), cuts)])


def quarters(matrix: Any, columns: int) -> Any:
    """The seven factors that are quarters of a matrix, or sums of them."""
    (b11, b12), (b21, b22) = (half.chunk(2, dim=1) for half in matrix.chunk(2))
    t1, t3 = b12 - b11, b22 - b12
    t2 = b22 - t1
    factors = torch.stack([b11, b21, t2, t1, b22, t3, b21 - t2]).float()
    return factors.unflatten(2, (-1, columns)).permute(2, 0, 1, 3).reshape(-1)


def native_weight(form: str, weight: Any, columns: int, deepest: int) -> Any:
    """A weight as the kernel of a step wants it: "strassen matrix" or the like for products."""
    way, _, form = form.rpartition(" ")
    if form == "winograd":
        return winograd_weight(weight, columns, way == "small")
    if form == "depthwise":
        return weight.squeeze(1).permute(1, 2, 0).reshape(-1)
    if form == "vector":
        return weight.reshape(-1)
    matrix, runs = weight.t() if form == "transposed" else weight, 1
    if form == "filters":
        matrix, runs = weight.permute(2, 3, 1, 0).reshape(-1, weight.shape[0]), weight.shape[2]
    if way == "strassen":
        pixels = weight[0, 0].numel() if form == "filters" else 1
        return strassen_weight(matrix, pixels, columns, deepest)
    return packed_matrix(matrix, runs, columns, deepest)


def row_table(step: dict[str, Any]) -> Any:
    """Where the rows of a convolution as a product begin in its operand."""
    image, line, depth = step["height"] * step["width"], step["width"], step["depth"]
    n = torch.arange(step["batch"]).reshape(-1, 1, 1) * image
    y = torch.arange(step["out_height"]).reshape(1, -1, 1) * step["stride_down"] * line
    x = torch.arange(step["out_width"]).reshape(1, 1, -1) * step["stride"]
    return ((n + y + x) * depth).reshape(-1).to(torch.int32)


class NativeProgram:
    """Steps over one piece of memory, run by a team of threads.

    Numbers that name memory are places in the arena; names are weights; an operand of the program
    is "input 0" and so on. Without a compiler the fallback does the same in torch.
    """

    def __init__(
        self,
        source: str,
        steps: Sequence[dict[str, Any]],
        arena: int,
        weights: dict[str, Any],
        ports: tuple[Sequence[str], Sequence[tuple[int, Sequence[int], bool]]],
        fallback: Callable[..., Any],
    ) -> None:
        import threading

        self.library = native_library(source)
        self.fallback = fallback
        self.orders, self.results = ports
        self.lock = threading.Lock()
        if self.library is not None:
            self._place(steps, arena, weights)

    def _place(self, steps: Sequence[dict[str, Any]], arena: int, weights: dict[str, Any]) -> None:
        """Bring weights into the order of the kernels, and steps into the form of the library."""
        import ctypes

        columns, deepest = self.library.columns(), self.library.deepest()
        packed: dict[tuple[str, str], Any] = {}
        for step in steps:
            for form, name in (step["weight"], ("vector", step["bias"])):
                if name and (form, name) not in packed:
                    packed[form, name] = native_weight(form, weights[name], columns, deepest)
        sizes = {key: (tensor.numel() + 47) // 16 * 16 for key, tensor in packed.items()}
        self.weights = large_tensor(sum(sizes.values()) + 64)
        self.arena = large_tensor(arena + 64)
        self.tables = [row_table(step) if step["table"] else None for step in steps]
        places, at = {}, 0
        for key, tensor in packed.items():
            self.weights[at : at + tensor.numel()] = tensor
            places[key] = self.weights.data_ptr() + 4 * at
            at += sizes[key]
        names = "kind batch height width depth out_height out_width out_depth kernel_height"
        names += " kernel_width stride pad_top pad_left activation"
        pointers = "input weight bias residual table output scratch"
        fields: list[tuple[str, Any]] = [(name, ctypes.c_int64) for name in names.split()]
        fields += [(name, ctypes.c_float) for name in ("low", "high")]
        fields += [(name, ctypes.c_void_p) for name in pointers.split()]
        kind: Any = type("Step", (ctypes.Structure,), {"_fields_": fields})
        self.steps = (kind * len(steps))()
        self.count = ctypes.c_int64(len(steps))
        self.copy = ctypes.memmove
        self.patches: list[tuple[Any, str, int]] = []
        for index, step in enumerate(steps):
            for name in (*names.split(), "low", "high"):
                setattr(self.steps[index], name, step[name])
            for name in ("input", "residual", "output", "scratch"):
                self._point(index, name, step[name])
            form, weight = step["weight"]
            self.steps[index].weight = places.get((form, weight))
            self.steps[index].bias = places.get(("vector", step["bias"]))
            table = self.tables[index]
            self.steps[index].table = None if table is None else table.data_ptr()

    def _point(self, index: int, name: str, place: int | str | None) -> None:
        if isinstance(place, str):
            self.patches.append((self.steps[index], name, int(place.split()[1])))
        elif place is not None:
            setattr(self.steps[index], name, self.arena.data_ptr() + 4 * place)

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
        with self.lock:
            for step, name, operand in self.patches:
                setattr(step, name, given[operand].data_ptr())
            self.perform()
            return tuple(self._result(*result) for result in self.results)

    def perform(self) -> None:
        """All steps, over what lies in memory."""
        self.library.run(self.steps, self.count, torch.get_num_threads(), None)

    def _result(self, place: int, shape: Sequence[int], is_image: bool) -> Any:
        """A copy that is not made by the threads of torch, which stay awake and disturb ours."""
        result = self.arena.new_empty(shape)
        self.copy(result.data_ptr(), self.arena.data_ptr() + 4 * place, result.nbytes)
        return result.permute(0, 3, 1, 2) if is_image else result
