"""Kernels written in Triton as a provider."""

from __future__ import annotations

from collections.abc import Sequence

from relayout.backends.torch.providers.conv_form import ConvForm
from relayout.backends.torch.providers.conv_groups import conv_refusal, window_of, with_orders
from relayout.backends.torch.providers.provider import Candidate, Provider
from relayout.backends.torch.providers.site import Site
from relayout.backends.torch.providers.triton_depthwise import depthwise_kernels
from relayout.backends.torch.providers.triton_grouped import grouped_kernels
from relayout.backends.torch.providers.triton_product import pixel_kernels, product_kernels
from relayout.backends.torch.providers.triton_text import has_triton, takes_triton
from relayout.backends.torch.providers.work import GroupWork, Work


class TritonProvider(Provider):
    """Products, depthwise and grouped convolutions in half precision, with what follows them."""

    name = "triton"

    def refusal(self, work: Work, site: Site) -> str | None:
        if not isinstance(work, GroupWork):
            return "there are kernels in Triton around one convolution or product only"
        if not takes_triton(site):
            return "kernels in Triton are for half precision on CUDA"
        if not work.group.is_conv:
            is_known = site.shape(work.group.source) is not None
            return None if is_known else "the rank of the operand is unknown"
        refusal = conv_refusal(work.group, site)
        if refusal is None and not self.build(work, site):
            return "the convolution is neither pointwise nor depthwise nor of small groups"
        return refusal

    def build(self, work: Work, site: Site) -> Sequence[Candidate]:
        if not isinstance(work, GroupWork):
            return []
        if not work.group.is_conv:
            return product_kernels(work.group)
        window = window_of(work.group, site)
        if window.is_pointwise:
            return pixel_kernels(work.group, window)
        return depthwise_kernels(work.group, window) or grouped_kernels(work.group, window)

    def describe(self, candidate: Candidate) -> str:
        words = f"tiles of {candidate.name.removeprefix('triton ')}"
        return with_orders(words, candidate) if isinstance(candidate, ConvForm) else words

    def fault(self, site: Site) -> str | None:
        is_meant = site.is_cuda and not site.is_float32
        return "Triton is not installed" if is_meant and not has_triton() else None
