"""Sliding windows: kernel, strides, dilations and padding of convolutions and pools."""

from __future__ import annotations

from dataclasses import dataclass

from relayout.backends.torch.lower.axes import short
from relayout.backends.torch.program.call import Call
from relayout.backends.torch.runtime import window as runtime


@dataclass(frozen=True, slots=True)
class Window:
    """A window over spatial axes."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...] | None
    """Before each axis, then after each; None where it is known only at run time."""
    same: str = ""
    """SAME_UPPER or SAME_LOWER, where that determines the padding."""

    @property
    def rank(self) -> int:
        return len(self.kernel)

    @property
    def padding(self) -> tuple[int, ...] | None:
        """The padding, if it is the same before and after each axis."""
        if self.pads is None or self.pads[: self.rank] != self.pads[self.rank :]:
            return None
        return self.pads[: self.rank]

    def padded(self, call: Call, text: str, value: str = "0") -> str:
        """A tensor with the padding around it."""
        if self.pads is not None:
            return pad_text(text, self.pads, value) if any(self.pads) else text
        given = (self.kernel, self.strides, self.dilations, self.same == "SAME_UPPER", value)
        return call.let(call.helper(runtime.pad_same, text, *given), "padded")

    def arguments(self, *, dilation: bool = True, padding: bool = True) -> str:
        """What torch's functions call them, defaults left out."""
        text = ""
        if any(stride != 1 for stride in self.strides):
            text += f", stride={short(self.strides)}"
        if padding and self.padding is not None and any(self.padding):
            text += f", padding={short(self.padding)}"
        if dilation and any(step != 1 for step in self.dilations):
            text += f", dilation={short(self.dilations)}"
        return text


def pad_text(text: str, pads: tuple[int, ...], value: str = "0") -> str:
    """ONNX: before all axes, then after all of them; torch: both sides of the last axis first."""
    rank = len(pads) // 2
    reverse = [pads[axis + side] for axis in reversed(range(rank)) for side in (0, rank)]
    last = "" if value == "0" else f", value={value}"
    return f"F.pad({text}, {reverse!r}{last})"


def window_of(call: Call, kernel: tuple[int, ...]) -> Window:
    """The window of a node whose kernel has these lengths."""
    ones = (1,) * len(kernel)
    strides = call.ints("strides") or ones
    dilations = call.ints("dilations") or ones
    automatic = call.string("auto_pad", "NOTSET")
    zeros = (0,) * 2 * len(kernel)
    if automatic == "VALID":
        return Window(kernel, strides, dilations, zeros)
    if automatic in {"", "NOTSET"}:
        return Window(kernel, strides, dilations, call.ints("pads") or zeros)
    pads = _same_pads(call, kernel, strides, dilations, automatic)
    return Window(kernel, strides, dilations, pads, automatic)


def _known_lengths(call: Call, rank: int) -> list[int] | None:
    """The lengths of the spatial axes; those of a body may differ from round to round."""
    shape = call.shape(0)
    lengths = () if shape is None or call.scope.parent is not None else shape[2:]
    known = [length for length in lengths if isinstance(length, int)]
    return known if len(known) == rank else None


def windows_along(call: Call, window: Window, *, ceil: bool) -> list[int] | None:
    """How many windows fit along each axis, where that is known."""
    lengths = _known_lengths(call, window.rank)
    if lengths is None or window.pads is None:
        return None
    given = (window.kernel, window.strides, window.dilations, window.pads, ceil)
    return runtime.window_counts(lengths, *given)


def _same_pads(
    call: Call,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    automatic: str,
) -> tuple[int, ...] | None:
    known = _known_lengths(call, len(kernel))
    if known is None:
        return None
    return runtime.same_pads(known, kernel, strides, dilations, automatic == "SAME_UPPER")
