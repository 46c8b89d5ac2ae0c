"""Pools over windows and over all of space."""

from __future__ import annotations

from relayout.backends.torch.lower.axes import short
from relayout.backends.torch.lower.window import Window, window_of, windows_along
from relayout.backends.torch.program.call import Call, Lowering, Results, Several
from relayout.backends.torch.program.dtypes import FLOATS
from relayout.backends.torch.runtime import window as runtime


def window_and_ceil(call: Call) -> tuple[Window, bool]:
    kernel = call.ints("kernel_shape")
    if kernel is None or len(kernel) > 3:
        raise call.refusal("has more than three spatial axes")
    window = window_of(call, kernel)
    is_automatic = call.string("auto_pad", "NOTSET") not in {"", "NOTSET"}
    return window, bool(call.integer("ceil_mode", 0)) and not is_automatic


def pads_text(call: Call, window: Window) -> str:
    if window.pads is not None:
        return repr(window.pads)
    lengths = f"{call.tensor(0)}.shape[2:]"
    upper = window.same == "SAME_UPPER"
    return call.helper(
        runtime.same_pads, lengths, window.kernel, window.strides, window.dilations, upper
    )


def options(call: Call, window: Window, ceil: bool) -> tuple[object, ...]:
    return (window.kernel, window.strides, window.dilations, pads_text(call, window), ceil)


def fits(window: Window) -> bool:
    """Whether torch's own pools take the padding."""
    padding = window.padding
    return padding is not None and all(
        2 * pad <= size for pad, size in zip(padding, window.kernel, strict=True)
    )


def plain_arguments(window: Window, ceil: bool, *, dilation: bool) -> str:
    """Without strides torch's pools step by the kernel, ONNX's by one."""
    text = short(window.kernel)
    if window.strides != window.kernel:
        text += f", stride={short(window.strides)}"
    if window.padding is not None and any(window.padding):
        text += f", padding={short(window.padding)}"
    if dilation and any(step != 1 for step in window.dilations):
        text += f", dilation={short(window.dilations)}"
    return text + (", ceil_mode=True" if ceil else "")


def guarded(call: Call, window: Window, ceil: bool, text: str) -> str:
    """A pool of torch's, but for no channels and for axes too short, which torch refuses."""
    counts = windows_along(call, window, ceil=ceil)
    if counts is not None and min(counts) > 0 and 0 not in (call.shape(0) or ()):
        return text
    given = (call.tensor(0), *options(call, window, ceil))
    has_windows = call.helper(runtime.has_windows, *given)
    return f"{text} if {has_windows} else {call.helper(runtime.no_windows, *given)}"


def max_pool(call: Call) -> Results:
    window, ceil = window_and_ceil(call)
    if call.is_read(1):
        by_column = bool(call.integer("storage_order", 0))
        given = (call.tensor(0), *options(call, window, ceil), by_column)
        return Several(call.helper(runtime.max_pool_indices, *given), 2)
    if not fits(window) or call.dtype(0) not in FLOATS:
        return call.helper(runtime.max_pool, call.tensor(0), *options(call, window, ceil))
    arguments = plain_arguments(window, ceil, dilation=True)
    return guarded(call, window, ceil, f"F.max_pool{window.rank}d({call.tensor(0)}, {arguments})")


def average_pool(call: Call) -> str:
    window, ceil = window_and_ceil(call)
    counts_padding = bool(call.integer("count_include_pad", 0))
    is_dense = all(step == 1 for step in window.dilations)
    if (
        not fits(window)
        or not is_dense
        or not _covers(call, window)
        or (ceil and call.version < 19)
    ):
        given = (call.tensor(0), *options(call, window, ceil), counts_padding)
        return call.helper(runtime.average_pool, *given)
    text = plain_arguments(window, ceil, dilation=False)
    if not counts_padding and window.padding is not None and any(window.padding):
        text += ", count_include_pad=False"
    return guarded(call, window, ceil, f"F.avg_pool{window.rank}d({call.tensor(0)}, {text})")


def _covers(call: Call, window: Window) -> bool:
    """Whether an image is known to be as large as the kernel, which torch demands of volumes."""
    lengths = (call.shape(0) or ())[2:]
    return window.rank < 3 or (
        len(lengths) == window.rank
        and all(
            isinstance(length, int) and length >= size
            for length, size in zip(lengths, window.kernel, strict=True)
        )
    )


def lp_pool(call: Call) -> str:
    window, ceil = window_and_ceil(call)
    given = (call.tensor(0), *options(call, window, ceil), call.integer("p", 2))
    return call.helper(runtime.lp_pool, *given)


def over_space(form: str) -> Lowering:
    def lower(call: Call) -> str:
        rank = call.rank(0)
        axes = f"tuple(range(2, {call.tensor(0)}.dim()))" if rank is None else tuple(range(2, rank))
        return form.format(call.tensor(0), axes, call.integer("p", 2))

    return lower


def max_unpool(call: Call) -> str:
    """The places of the elements are those of the shape that follows from the window."""
    window, _ = window_and_ceil(call)
    pads = window.pads or (0,) * 2 * window.rank
    more = [size - pads[axis] - pads[axis + window.rank] for axis, size in enumerate(window.kernel)]
    lengths = [
        f"({call.tensor(0)}.shape[{axis + 2}] - 1) * {stride} + {more[axis]}"
        for axis, stride in enumerate(window.strides)
    ]
    shape = f"(*{call.tensor(0)}.shape[:2], {', '.join(lengths)})"
    wanted = call.list_text(2) if call.has(2) else "None"
    return call.helper(runtime.max_unpool, call.tensor(0), call.tensor(1), shape, wanted)


LOWERINGS: dict[str, Lowering] = {
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "LpPool": lp_pool,
    "MaxUnpool": max_unpool,
    "GlobalAveragePool": over_space("{}.mean({}, keepdim=True)"),
    "GlobalMaxPool": over_space("torch.amax({}, {}, keepdim=True)"),
    "GlobalLpPool": over_space("torch.linalg.vector_norm({0}, {2}, {1}, keepdim=True)"),
}
