"""The libraries under torch as a provider: cuDNN and cuBLASLt on CUDA, oneDNN on CPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from relayout.backends.torch.providers.conv_form import ConvForm
from relayout.backends.torch.providers.conv_groups import (
    TENSOR_CORE_CHANNELS,
    conv_refusal,
    is_done_in_parts,
    reads_first,
    window_of,
    with_orders,
)
from relayout.backends.torch.providers.library import (
    CudnnConv,
    GemmConv,
    Linear,
    OneDnnConv,
    PlainConv,
    TiledConv,
)
from relayout.backends.torch.providers.library_group import LibraryGroup
from relayout.backends.torch.providers.orders import FIRST, LAST, Order
from relayout.backends.torch.providers.provider import Candidate, Provider
from relayout.backends.torch.providers.site import Site
from relayout.backends.torch.providers.triton_text import takes_triton
from relayout.backends.torch.providers.window import Sliding
from relayout.backends.torch.providers.work import GroupWork, Work
from relayout.graph.read import shape_of

TENSOR_CORE_DEPTHS = (4, 8)
"""Numbers of channels that tensor cores take without a slower way round."""

WORDS: dict[type[ConvForm], str] = {
    CudnnConv: "cuDNN fused",
    GemmConv: "cuBLASLt product with bias",
    OneDnnConv: "oneDNN fused",
    PlainConv: "torch convolution",
    TiledConv: "product of windows that do not overlap",
}


class LibraryProvider(Provider):
    """Kernels for a convolution, or a product with a constant matrix, and what follows it."""

    name = "library"

    def refusal(self, work: Work, site: Site) -> str | None:
        if not isinstance(work, GroupWork):
            return "libraries have kernels around one convolution or product only"
        group = work.group
        if not group.is_conv:
            is_alone = len(group.nodes) == 1
            is_compared = takes_triton(site) and site.shape(group.source) is not None
            return "torch's operator is the same kernel" if is_alone and not is_compared else None
        refusal = conv_refusal(group, site)
        if refusal is not None or not site.is_cuda:
            return refusal
        window = window_of(group, site)
        is_lacking = is_done_in_parts(group, window) and not window.is_tiled
        return "no library kernel does all of the group" if is_lacking else None

    def build(self, work: Work, site: Site) -> Sequence[Candidate]:
        if not isinstance(work, GroupWork):
            return []
        if not work.group.is_conv:
            return products(work.group, site)
        window = window_of(work.group, site)
        if site.is_cuda:
            return cuda_forms(work.group, window, reads_first=reads_first(window, site))
        return cpu_forms(work.group, window, has_onednn=site.is_float32 and _has_onednn())

    def describe(self, candidate: Candidate) -> str:
        if not isinstance(candidate, ConvForm):
            is_padded = isinstance(candidate, Linear) and candidate.more
            return "product with bias" + ", more columns" * bool(is_padded)
        return with_orders(f"{WORDS[type(candidate)]}{_padded(candidate)}", candidate)


def products(group: LibraryGroup, site: Site) -> list[Linear]:
    """The product, also with columns as many as tensor cores take at once, if they are others."""
    columns = (shape_of(group.weight) or (0,))[-1]
    more = -columns % TENSOR_CORE_CHANNELS if isinstance(columns, int) else 0
    is_other = more and site.is_cuda and not site.is_float32
    return [Linear(group), Linear(group, more=more)] if is_other else [Linear(group)]


def _padded(form: ConvForm) -> str:
    """How many channels an operand gets, where it gets more."""
    depth = form.depth if isinstance(form, CudnnConv) else 0
    return f", {depth} channels" if depth else ""


def _has_onednn() -> bool:
    return bool(torch.backends.mkldnn.is_available())


def cpu_forms(group: LibraryGroup, window: Sliding, *, has_onednn: bool) -> list[ConvForm]:
    """Those that are channels last throughout first, and oneDNN's before torch's own."""
    activation = group.activation
    has_kernel = activation.is_none or activation.is_relu or activation.is_bounded
    plain = [PlainConv(group, window), PlainConv(group, window, FIRST, FIRST)]
    if not (has_kernel and has_onednn):
        return [*plain]
    last, first = (OneDnnConv(group, window, order) for order in (LAST, FIRST))
    return [last, plain[0], first, plain[1]]


def cuda_forms(group: LibraryGroup, window: Sliding, *, reads_first: bool) -> list[ConvForm]:
    """Kernels that do all of a group at once, or else torch's own and the rest after it."""
    orders: Sequence[Order] = (LAST, FIRST) if window.is_tiled else ()
    products = [TiledConv(group, window, order) for order in orders]
    if is_done_in_parts(group, window):
        return [*products]
    first = _channels_first(group, window) if reads_first else []
    return [*_channels_last(group, window), *first, *products]


def _channels_last(group: LibraryGroup, window: Sliding) -> list[ConvForm]:
    if not group.activation.is_relu:
        plain = PlainConv(group, window)
        is_product = window.is_pointwise and group.bias is not None
        return [GemmConv(group, window), plain] if is_product else [plain]
    found: list[ConvForm] = [CudnnConv(group, window)]
    if window.groups == 1:
        depths = [depth for depth in TENSOR_CORE_DEPTHS if depth > window.source[1]]
        found += [CudnnConv(group, window, depth=depth) for depth in depths]
    if window.is_pointwise and group.residual is None:
        found.append(GemmConv(group, window))
    return found


def _channels_first(group: LibraryGroup, window: Sliding) -> list[ConvForm]:
    kernel = CudnnConv if group.activation.is_relu else PlainConv
    return [kernel(group, window, FIRST, FIRST)]
