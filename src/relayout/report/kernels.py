"""What is reported about kernels that were measured on a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table


@dataclass(frozen=True, slots=True)
class KernelOption:
    """One way to do some work."""

    provider: str
    kernel: str
    seconds: float | None
    """None where it was not measured or cannot run."""
    cannot_run: str = ""
    """Why it cannot run."""
    is_noisy: bool = False
    """Whether its runs spread too much for the time to be kept."""


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """Some work, and what it is done by."""

    operator: str
    input: tuple[int, ...]
    output: tuple[int, ...]
    window: tuple[int, ...]
    strides: tuple[int, ...]
    groups: int
    bias: bool
    residual: bool
    activation: str
    dtype: str
    chosen: KernelOption
    options: tuple[KernelOption, ...]


@dataclass(frozen=True, slots=True)
class CalibrationRecord:
    """What `calibrate` reports."""

    device: str
    kernels: tuple[KernelRecord, ...]
    notices: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def calibration_text(record: CalibrationRecord) -> Iterator[RenderableType]:
    yield escape(f"kernels on {record.device}")
    yield kernel_table(record.kernels)
    for notice in record.notices:
        yield escape(f"note: {notice}")


def kernel_table(kernels: Sequence[KernelRecord]) -> Table:
    """A row for each candidate, the chosen one first, and a line between one work and the next."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("operator")
    table.add_column("shape (N C H W)", no_wrap=True)
    table.add_column("window")
    table.add_column("provider", no_wrap=True)
    table.add_column("kernel, the chosen one first")
    table.add_column("µs", justify="right")
    for each in kernels:
        others = [option for option in each.options if option != each.chosen]
        heads: tuple[str, ...] = (operator_text(each), shape_text(each), window_text(each))
        for option in (each.chosen, *others):
            is_last = option == [each.chosen, *others][-1]
            cells = (*heads, option.provider, option.kernel, time_text(option))
            table.add_row(*map(escape, cells), end_section=is_last)
            heads = ("",) * len(heads)
    return table


def operator_text(record: KernelRecord) -> str:
    """What is computed at once, and in which type if that is not the usual one."""
    parts = [record.operator, *["bias"] * record.bias, *["residual"] * record.residual]
    parts += [record.activation] if record.activation else []
    parts += [record.dtype] if record.dtype != "float32" else []
    return ", ".join(parts)


def shape_text(record: KernelRecord) -> str:
    """From which shape to which."""
    shapes = [" ".join(map(str, shape)) for shape in (record.input, record.output)]
    return shapes[0] if shapes[0] == shapes[1] else "\n→ ".join(shapes)


def window_text(record: KernelRecord) -> str:
    """Kernel size, stride and groups of a convolution; empty for other operators."""
    if not record.window:
        return ""
    is_depthwise = record.groups == record.input[1] == record.output[1] and record.groups > 1
    parts = ["x".join(map(str, record.window))]
    sides = dict.fromkeys(record.strides)
    parts += [f"stride {'x'.join(map(str, sides))}"] * (set(sides) != {1})
    parts += [f"{record.groups} groups"] * (record.groups > 1 and not is_depthwise)
    parts += ["depthwise"] * is_depthwise
    return ", ".join(parts)


def time_text(option: KernelOption) -> str:
    """Microseconds, or why there are none."""
    if option.cannot_run:
        return f"cannot run: {option.cannot_run}"
    if option.seconds is None:
        return "not timed"
    return f"{1e6 * option.seconds:.1f}{' (noisy)' if option.is_noisy else ''}"
