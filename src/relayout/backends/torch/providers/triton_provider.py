"""Kernels written in Triton as a provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

from relayout.backends.torch.program.program import ProgramStep
from relayout.backends.torch.providers.chains import ChainWork, with_chains
from relayout.backends.torch.providers.conv_form import ConvForm
from relayout.backends.torch.providers.conv_groups import conv_refusal, window_of, with_orders
from relayout.backends.torch.providers.library_group import LibraryGroup
from relayout.backends.torch.providers.prices import Prices
from relayout.backends.torch.providers.provider import Candidate, Provider
from relayout.backends.torch.providers.site import Site
from relayout.backends.torch.providers.triton_chain import TritonChain, chain_kernels
from relayout.backends.torch.providers.triton_depthwise import depthwise_kernels
from relayout.backends.torch.providers.triton_grouped import grouped_kernels
from relayout.backends.torch.providers.triton_product import pixel_kernels, product_kernels
from relayout.backends.torch.providers.triton_text import has_triton, takes_triton
from relayout.backends.torch.providers.work import GroupWork, RegionWork, Work


class TritonProvider(Provider):
    """Products, one after another too, depthwise and grouped convolutions in half precision."""

    name = "triton"
    is_own = True

    def refusal(self, work: Work, site: Site) -> str | None:
        if not isinstance(work, GroupWork | ChainWork):
            return "there are kernels in Triton around one convolution or product or two only"
        if not takes_triton(site):
            return "kernels in Triton are for half precision on CUDA"
        if isinstance(work, ChainWork):
            return None if self.build(work, site) else "two products do not fit into one kernel"
        if not work.group.is_conv:
            is_known = site.shape(work.group.source) is not None
            return None if is_known else "the rank of the operand is unknown"
        refusal = conv_refusal(work.group, site)
        if refusal is None and not self.build(work, site):
            return "the convolution is neither pointwise nor depthwise nor of small groups"
        return refusal

    def build(self, work: Work, site: Site) -> Sequence[Candidate]:
        if isinstance(work, ChainWork):
            return chain_kernels(work.chain, _device(site).shared_memory_per_block_optin)
        if not isinstance(work, GroupWork):
            return []
        if not work.group.is_conv:
            return product_kernels(work.group)
        window = window_of(work.group, site)
        if window.is_pointwise:
            return pixel_kernels(work.group, window)
        return depthwise_kernels(work.group, window) or grouped_kernels(work.group, window)

    def regions(
        self,
        steps: Sequence[ProgramStep],
        groups: Mapping[ir.Node, LibraryGroup],
        site: Site,
        _prices: Prices,
    ) -> Sequence[RegionWork | ProgramStep]:
        """Products one after the other, where what is between them does not stay in the cache."""
        if not takes_triton(site):
            return steps
        return with_chains(steps, groups, site, least=_device(site).L2_cache_size // 2)

    def describe(self, candidate: Candidate) -> str:
        if isinstance(candidate, TritonChain):
            return f"both products in tiles of {candidate.tile.rows}x{candidate.tile.columns}"
        words = f"tiles of {candidate.name.removeprefix('triton ')}"
        return with_orders(words, candidate) if isinstance(candidate, ConvForm) else words

    def fault(self, site: Site) -> str | None:
        is_meant = site.is_cuda and not site.is_float32
        return "Triton is not installed" if is_meant and not has_triton() else None


def _device(site: Site) -> Any:
    return torch.cuda.get_device_properties(site.device)
