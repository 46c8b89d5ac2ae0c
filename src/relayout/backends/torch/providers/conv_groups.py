"""Which groups around a convolution kernels are looked for, whoever has them."""

from __future__ import annotations

from relayout.backends.torch.providers.conv_form import ConvForm
from relayout.backends.torch.providers.library_group import LibraryGroup
from relayout.backends.torch.providers.site import Site
from relayout.backends.torch.providers.window import Sliding

TENSOR_CORE_CHANNELS = 8
"""Halves that tensor cores read at a time."""

ORDER_WORDS = {"first": "NCHW", "last": "NHWC"}


def conv_refusal(group: LibraryGroup, site: Site) -> str | None:
    """Why no fused kernel takes a group around a convolution; None where some may."""
    window = site.window(group.anchor)
    if window is None:
        return "shapes or attributes of the convolution are unknown or rare"
    if window.padding is None:
        return "the padding differs between the sides"
    return None


def window_of(group: LibraryGroup, site: Site) -> Sliding:
    """The window of a group that is not refused."""
    window = site.window(group.anchor)
    if window is None:
        raise ValueError("the window of the convolution is unknown")
    return window


def is_done_in_parts(group: LibraryGroup, window: Sliding) -> bool:
    """Whether on CUDA no library kernel does all of a group, and what is left is worth a kernel."""
    is_product = window.is_pointwise and group.bias is not None
    is_bare = group.activation.is_none and group.bias is None and group.residual is None
    return not (group.activation.is_relu or is_product or is_bare)


def reads_first(window: Sliding, site: Site) -> bool:
    """Whether a kernel on CUDA that reads channels first may be as fast as one channels last.

    Those of halves turn them round to use tensor cores, unless one side has too few for these.
    """
    return site.is_float32 or min(window.source[1], window.result[1]) < TENSOR_CORE_CHANNELS


def with_orders(words: str, form: ConvForm) -> str:
    """The name of a kernel, and the orders of the tensors that it reads and writes."""
    if form.reads != form.writes:
        return f"{words}, {ORDER_WORDS[form.reads]} to {ORDER_WORDS[form.writes]}"
    return f"{words}, {ORDER_WORDS[form.reads]}"
