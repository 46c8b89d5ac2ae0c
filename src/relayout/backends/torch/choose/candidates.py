"""What a form of the libraries can run as on a device, and what it is known by."""

from __future__ import annotations

import onnx_ir as ir
import torch

from relayout.backends.torch.choose.bench import Bench, Candidate
from relayout.backends.torch.providers.conv_form import ConvForm
from relayout.backends.torch.providers.inductor import ConvKernel
from relayout.backends.torch.providers.library import (
    CudnnConv,
    GemmConv,
    Linear,
    OneDnnConv,
    PlainConv,
)
from relayout.backends.torch.providers.library_group import LibraryGroup
from relayout.backends.torch.providers.orders import FIRST, LAST
from relayout.backends.torch.providers.triton_depthwise import depthwise_kernels
from relayout.backends.torch.providers.triton_product import pixel_kernels, product_kernels
from relayout.backends.torch.providers.triton_text import has_triton
from relayout.backends.torch.providers.window import Sliding

TENSOR_CORE_DEPTHS = (4, 8)
"""Numbers of channels that tensor cores take without a slower way round."""


def products_of(group: LibraryGroup, bench: Bench) -> list[Candidate]:
    """The kernels there are for a product; none where the nodes are as good one by one."""
    if group.is_conv:
        return []
    if _takes_triton(bench) and bench.shape(group.source) is not None:
        return [Linear(group), *product_kernels(group)]
    return [Linear(group)] if len(group.nodes) > 1 else []


def forms_of(group: LibraryGroup, bench: Bench) -> list[ConvForm]:
    """The kernels there are for a convolution, those that are channels last throughout first."""
    window = bench.window(group.anchor) if group.is_conv else None
    if window is None or window.padding is None or group.activation.gelu:
        return []
    if bench.device.startswith("cuda"):
        own = triton_forms(group, window) if _takes_triton(bench) else []
        return [*cuda_forms(group, window), *own]
    activation = group.activation
    has_kernel = activation.is_none or activation.is_relu or activation.is_bounded
    is_there = torch.backends.mkldnn.is_available() and bench.precision.reduced == ir.DataType.FLOAT
    plain = [PlainConv(group, window), PlainConv(group, window, FIRST, FIRST)]
    if not (has_kernel and is_there):
        return [*plain]
    last, first = (OneDnnConv(group, window, order) for order in (LAST, FIRST))
    return [last, plain[0], first, plain[1]]


def cuda_forms(group: LibraryGroup, window: Sliding) -> list[ConvForm]:
    """Kernels that do all of a group at once, or else torch's own and the rest behind it."""
    if not group.activation.is_relu:
        return _cuda_forms_in_parts(group, window)
    found: list[ConvForm] = [CudnnConv(group, window)]
    if window.groups == 1:
        depths = [depth for depth in TENSOR_CORE_DEPTHS if depth > window.source[1]]
        found += [CudnnConv(group, window, depth=depth) for depth in depths]
    if window.is_pointwise and group.residual is None:
        found.append(GemmConv(group, window))
    return [*found, CudnnConv(group, window, FIRST, FIRST)]


def triton_forms(group: LibraryGroup, window: Sliding) -> list[ConvForm]:
    """Kernels of our own, where libraries may have none that does all of a group."""
    if window.is_pointwise:
        return [*pixel_kernels(group, window)]
    return [*depthwise_kernels(group, window)]


def _takes_triton(bench: Bench) -> bool:
    """Whether kernels in Triton are worth trying: products of float32 would be rounded more."""
    is_reduced = bench.precision.reduced != ir.DataType.FLOAT
    return bench.device.startswith("cuda") and is_reduced and has_triton()


def _cuda_forms_in_parts(group: LibraryGroup, window: Sliding) -> list[ConvForm]:
    """Where no kernel does all: a product or a convolution, and the rest behind it."""
    plain = [PlainConv(group, window), PlainConv(group, window, FIRST, FIRST)]
    if window.is_pointwise and group.bias is not None:
        return [GemmConv(group, window), *plain]
    if group.activation.is_none and group.bias is None and group.residual is None:
        return [*plain]
    return [ConvKernel(group, window), ConvKernel(group, window, FIRST, FIRST)]


def key_of(group: LibraryGroup, bench: Bench) -> str:
    """What groups that take the same time have in common."""
    activation, precision = group.activation, bench.precision
    rest = (
        f"bias{int(group.bias is not None)} sum{int(group.residual is not None)}",
        f"[{activation.low}, {activation.high}] gelu{int(activation.gelu)}",
    )
    window = bench.window(group.anchor) if group.is_conv else None
    if window is None:
        shapes = f"{bench.shape(group.source)} times {bench.shape(group.weight)}"
        return " ".join((shapes, precision.reduced.name, *rest))
    return " ".join(
        (
            f"{'x'.join(map(str, window.source))}->{'x'.join(map(str, window.result))}",
            f"k{window.kernel} s{window.strides} p{window.pads} d{window.dilations}",
            f"g{window.groups} {precision.reduced.name}",
            *rest,
        )
    )
