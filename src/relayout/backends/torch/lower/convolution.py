"""Convolutions."""

from __future__ import annotations

from relayout.backends.torch.lower.axes import short
from relayout.backends.torch.lower.window import Window, window_of, windows_along
from relayout.backends.torch.program.call import Call, Lowering
from relayout.backends.torch.runtime import convolution as runtime


def kernel_of(call: Call, weight: int = 1) -> tuple[int, ...]:
    """The lengths of the kernel, from the attribute or from the weights.

    A length known only at run time is 0: it matters only for automatic padding.
    """
    given = call.ints("kernel_shape")
    if given is not None:
        return given
    shape = call.shape(weight)
    if shape is None:
        raise call.refusal("has a kernel of unknown rank")
    lengths = tuple(length if isinstance(length, int) else 0 for length in shape[2:])
    if 0 in lengths and call.string("auto_pad", "").startswith("SAME"):
        raise call.refusal("has automatic padding for a kernel of unknown size")
    return lengths


def convolution_of(call: Call, weight: int = 1) -> tuple[Window, int]:
    """The window and the number of groups of a convolution."""
    return window_of(call, kernel_of(call, weight)), call.integer("group", 1)


def conv(call: Call) -> str:
    window, groups = convolution_of(call)
    _check_rank(call, window)
    counts = windows_along(call, window, ceil=False)
    if counts is not None and 0 in (call.shape(0) or ()):
        given = (call.tensor(0), call.tensor(1), call.optional(2))
        return call.helper(runtime.conv_of_nothing, *given, tuple(counts))
    text = call.tensor(0)
    if window.padding is None:
        text = call.let(window.padded(call, text), "padded")
    bias = f", {call.tensor(2)}" if call.has(2) else ""
    last = f", groups={groups}" if groups != 1 else ""
    name = f"F.conv{window.rank}d"
    return f"{name}({text}, {call.tensor(1)}{bias}{window.arguments()}{last})"


def _check_rank(call: Call, window: Window) -> None:
    if window.rank not in {1, 2, 3}:
        raise call.refusal(f"has {window.rank} spatial axes; torch has 1 to 3")


def conv_transpose(call: Call) -> str:
    kernel = kernel_of(call)
    ones = (1,) * len(kernel)
    strides, dilations = call.ints("strides") or ones, call.ints("dilations") or ones
    extra = call.ints("output_padding") or (0,) * len(kernel)
    groups, shape = call.integer("group", 1), call.ints("output_shape")
    automatic = call.string("auto_pad", "NOTSET")
    pads = call.ints("pads") or (0,) * 2 * len(kernel)
    _check_rank(call, Window(kernel, strides, dilations, pads))
    given = (call.tensor(0), call.tensor(1), call.optional(2))
    if shape is not None or automatic.startswith("SAME"):
        upper = automatic != "SAME_LOWER" if shape is None else automatic == "SAME_UPPER"
        options = (strides, dilations, extra, groups, shape and tuple(shape[-len(kernel) :]), upper)
        return call.helper(runtime.conv_transpose_to, *given, *options)
    pads = (0,) * 2 * len(kernel) if automatic == "VALID" else pads
    window = Window(kernel, strides, dilations, pads)
    is_plain = all(
        more < max(stride, step)
        for more, stride, step in zip(extra, strides, dilations, strict=True)
    )
    if window.padding is None or not is_plain or _may_be_cut_away(call, window):
        return call.helper(
            runtime.conv_transpose_by, *given, strides, dilations, extra, groups, pads
        )
    text = window.arguments()
    text += f", output_padding={short(extra)}" if any(extra) else ""
    text += f", groups={groups}" if groups != 1 else ""
    bias = f", {given[2]}" if call.has(2) else ""
    return f"F.conv_transpose{window.rank}d({given[0]}, {given[1]}{bias}{text})"


def _may_be_cut_away(call: Call, window: Window) -> bool:
    """Whether the padding may be all that there is along an axis, which torch refuses."""
    lengths = call.shape(0) or (None,) * (2 + window.rank)
    pads = window.padding or ()
    sides = zip(lengths[2:], window.kernel, window.strides, window.dilations, pads, strict=True)
    return any(
        2 * pad >= (length - 1 if isinstance(length, int) else 0) * stride + (size - 1) * step + 1
        for length, size, stride, step, pad in sides
    )


def deform_conv(call: Call) -> str:
    window, groups = convolution_of(call)
    if window.rank != 2:
        raise call.refusal("is known here for two spatial axes only")
    pads = window.pads or (0, 0, 0, 0)
    given = (call.tensor(0), call.tensor(1), call.tensor(2), call.optional(3), call.optional(4))
    options = (window.strides, window.dilations, pads, groups, call.integer("offset_group", 1))
    return call.helper(runtime.deform_conv, *given, *options)


def col2im(call: Call) -> str:
    options = [call.ints(name) for name in ("dilations", "pads", "strides")]
    given = (call.tensor(0), call.list_text(1), call.list_text(2))
    return call.helper(runtime.col2im, *given, *options)


LOWERINGS: dict[str, Lowering] = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "DeformConv": deform_conv,
    "Col2Im": col2im,
}
