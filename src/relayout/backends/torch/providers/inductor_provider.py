"""Inductor as a provider: it compiles functions of torch to kernels."""

from __future__ import annotations

from collections.abc import Sequence

from relayout.backends.torch.lower.registry import SPELT_OUT
from relayout.backends.torch.providers.conv_form import ConvForm
from relayout.backends.torch.providers.conv_groups import (
    conv_refusal,
    is_done_in_parts,
    reads_first,
    window_of,
    with_orders,
)
from relayout.backends.torch.providers.inductor import (
    ConvKernel,
    KernelRun,
    SpeltAttention,
    can_be_kernel,
)
from relayout.backends.torch.providers.orders import FIRST
from relayout.backends.torch.providers.provider import Candidate, Provider
from relayout.backends.torch.providers.site import Site
from relayout.backends.torch.providers.work import GroupWork, RunWork, Work
from relayout.graph.read import is_op, shape_of

SLOW = 1e-3
"""Seconds from which on it is worth while on a CPU to have Inductor compile a kernel."""

COMPARED = ("MaxPool", "Concat", "DepthToSpace", "Resize")
"""Operators that move data more than they compute: compiled kernels may do that faster."""


class InductorProvider(Provider):
    """One kernel for nodes that no library takes, or for what follows a convolution on CUDA."""

    name = "inductor"

    def refusal(self, work: Work, site: Site) -> str | None:
        if isinstance(work, GroupWork):
            return self._group_refusal(work, site)
        if not isinstance(work, RunWork):
            return "regions are not handed to Inductor"
        if len(work.nodes) == 1:
            is_compared = site.is_cuda and (_is_compared(work) or _spelt(work) is not None)
            return None if is_compared else "one node is one kernel already"
        return None if can_be_kernel(work.nodes) else "the nodes compute little, or ranks are open"

    def _group_refusal(self, work: GroupWork, site: Site) -> str | None:
        if not (work.group.is_conv and site.is_cuda):
            return "libraries have kernels for it"
        refusal = conv_refusal(work.group, site)
        if refusal is None and not is_done_in_parts(work.group, window_of(work.group, site)):
            return "libraries have kernels for it"
        return refusal

    def build(self, work: Work, site: Site) -> Sequence[Candidate]:
        if not isinstance(work, GroupWork):
            spelt = _spelt(work) if len(work.nodes) == 1 else None
            return [KernelRun(work.operands, work.results) if spelt is None else spelt]
        group, window = work.group, window_of(work.group, site)
        first = [ConvKernel(group, window, FIRST, FIRST)] if reads_first(window, site) else []
        return [ConvKernel(group, window), *first]

    def describe(self, candidate: Candidate) -> str:
        if isinstance(candidate, SpeltAttention):
            return "products and a Softmax, compiled"
        if isinstance(candidate, ConvForm):
            return with_orders("convolution and one compiled kernel", candidate)
        return "one compiled kernel"

    def worth_from(self, site: Site) -> float:
        """To compile for a CPU takes seconds, in each process."""
        return 0.0 if site.is_cuda else SLOW


def _spelt(work: Work) -> SpeltAttention | None:
    """The attention that some work is, spelt out, if it is one whose shapes are known."""
    (node,) = work.nodes
    lowering = SPELT_OUT.get((node.domain, node.op_type))
    is_causal = any(node.attributes.get_int(each, 0) for each in ("is_causal", "unidirectional"))
    if lowering is None or is_causal or shape_of(node.outputs[0]) is None:
        return None
    return SpeltAttention(lowering)


def _is_compared(work: RunWork) -> bool:
    """Whether a compiled kernel for a node by itself is worth a try: its lengths are known."""
    (node,) = work.nodes
    return is_op(node, *COMPARED) and shape_of(node.outputs[0]) is not None
