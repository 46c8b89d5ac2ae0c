"""Two products of the same rows, one after the other, in the steps of a program."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from relayout.backends.torch.program.program import ProgramStep
from relayout.backends.torch.providers.library_group import LibraryGroup
from relayout.backends.torch.providers.site import Site
from relayout.backends.torch.providers.work import GroupWork, RegionWork, borders_of

WIDEST = 256
"""Rows of so many numbers fit beside each other into a program; longer ones are not tried."""


@dataclass(frozen=True, slots=True)
class ProductChain:
    """A product, perhaps one that is added to it, and one of what they give."""

    first: LibraryGroup
    second: LibraryGroup
    added: LibraryGroup | None = None

    @property
    def factors_by_role(self) -> dict[str, LibraryGroup]:
        """The products that are summed, by names for what they read."""
        roles = {"added": self.added, "first": self.first}
        return {role: group for role, group in roles.items() if group is not None}

    @property
    def factors(self) -> tuple[LibraryGroup, ...]:
        return tuple(self.factors_by_role.values())

    @property
    def groups(self) -> tuple[LibraryGroup, ...]:
        return (*self.factors, self.second)

    @property
    def is_middle_kept(self) -> bool:
        """Whether what is between the products is read elsewhere too."""
        middle, own = self.first.output, set(self.second.nodes)
        return middle.is_graph_output() or any(use.node not in own for use in middle.uses())


@dataclass(frozen=True)
class ChainWork(RegionWork):
    """The steps of a chain."""

    chain: ProductChain


def with_chains(
    steps: Sequence[ProgramStep], groups: Mapping[ir.Node, LibraryGroup], site: Site, least: int
) -> list[ChainWork | ProgramStep]:
    """The steps, with those of chains that save at least so many bytes as one work.

    A chain stands where its first product does. So what is added to that moves down to it, and the
    second product up, if all that it reads is there.
    """
    found = _ChainSearch(steps, groups, site, least)
    taken: set[int] = set()
    works: dict[int, ChainWork] = {}
    for place in range(len(steps)):
        chain = found.chain_at(place, taken)
        if chain is not None:
            works[place] = found.work(chain)
            taken |= {found.places[group.nodes[-1]] for group in chain.groups}
    return [
        works.get(place, step)
        for place, step in enumerate(steps)
        if place in works or place not in taken
    ]


class _ChainSearch:
    """Looks for chains; knows which product each step is, and where values are made."""

    def __init__(
        self,
        steps: Sequence[ProgramStep],
        groups: Mapping[ir.Node, LibraryGroup],
        site: Site,
        least: int,
    ) -> None:
        self.steps, self.site, self.least = steps, site, least
        self.places = {node: place for place, step in enumerate(steps) for node in step.nodes}
        found = [groups.get(step.nodes[-1]) for step in steps]
        self.products = {
            place: group
            for place, (step, group) in enumerate(zip(steps, found, strict=True))
            if group is not None and step.nodes == group.nodes and self._is_product(group)
        }

    def chain_at(self, place: int, taken: set[int]) -> ProductChain | None:
        """The chain whose first product is at a place."""
        first = self.products.get(place)
        if first is None or place in taken:
            return None
        for use in first.output.uses():
            reader = self.places.get(use.node)
            second = None if reader is None or reader in taken else self.products.get(reader)
            if second is None or use.node is not second.anchor or use.idx != 0:
                continue
            chain = ProductChain(first, second, self._added_to(first, taken))
            if self._holds(chain, place):
                return chain
        return None

    def work(self, chain: ProductChain) -> ChainWork:
        steps = tuple(self.steps[self.places[group.nodes[-1]]] for group in chain.groups)
        nodes = tuple(node for step in steps for node in step.nodes)
        keys = [GroupWork.of(group).key(self.site) for group in chain.groups]
        kept = "kept" if chain.is_middle_kept else "passed on"
        signature = f"chain, {kept}: {' | '.join(keys)}"
        return ChainWork(nodes, *borders_of(nodes), steps, signature, chain)

    def _added_to(self, first: LibraryGroup, taken: set[int]) -> LibraryGroup | None:
        """The product that is added to another, and read nowhere else."""
        other = first.residual
        maker = None if other is None else other.producer()
        place = None if maker is None else self.places.get(maker)
        added = None if place is None or place in taken else self.products.get(place)
        if added is None or added.output is not other or added.is_conv != first.is_conv:
            return None
        is_plain = added.residual is None and added.activation.is_none
        return added if is_plain and _is_read_once(added.output) else None

    def _holds(self, chain: ProductChain, place: int) -> bool:
        first, second = chain.first, chain.second
        widths = (*(group.depth for group in chain.factors), second.width)
        if first.is_conv != second.is_conv or max(widths) > WIDEST:
            return False
        if first.activation.curve is not None:
            return False  # With a GELU between them libraries were faster in ConvNeXt-T and Swin-T.
        if second.residual is first.output or not self._is_made(second.residual, place):
            return False
        return self._saved(chain) >= self.least

    def _is_made(self, value: ir.Value | None, place: int) -> bool:
        """Whether a value is there before a step."""
        maker = None if value is None else value.producer()
        return maker is None or self.places.get(maker, place) < place

    def _saved(self, chain: ProductChain) -> int:
        """Bytes that are neither written nor read."""
        shape = self.site.shape(chain.first.output) or (0,)
        times = 1 + (not chain.is_middle_kept) + 2 * (chain.added is not None)
        return times * math.prod(shape) * int(self.site.precision.reduced.itemsize)

    def _is_product(self, group: LibraryGroup) -> bool:
        """Whether each row of the result is one of the operand times a matrix."""
        if self.site.shape(group.output) is None:
            return False
        if not group.is_conv:
            return self.site.shape(group.source) is not None
        window = self.site.window(group.anchor)
        return window is not None and window.is_pointwise


def _is_read_once(value: ir.Value) -> bool:
    return len(value.uses()) == 1 and not value.is_graph_output()
