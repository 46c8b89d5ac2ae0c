"""What copies and restatements are measured by before prices are made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from relayout.assign.drafts import Draft, NodeDraft
from relayout.assign.frames import Tensor
from relayout.layout.permutation import Permutation
from relayout.layout.shuffle import StoredOrder
from relayout.layout.transport import Transport
from relayout.ops.measure import item_bytes
from relayout.targets.prices.table import RuntimePrices
from relayout.targets.products import form_price
from relayout.targets.profiles.profile import Profile
from relayout.targets.reductions import reduction_price
from relayout.targets.target import PartedBy
from relayout.targets.transpose_prices import least_price


class Ruler(Protocol):
    """Measures what an objective adds up, in whole numbers."""

    @property
    def is_uniform(self) -> bool:
        """Whether every copy of a tensor is as long as the next."""
        ...

    def extra(self, draft: Draft, transport: Transport) -> int:
        """What one run of a restatement takes beyond what the model does as given."""
        ...

    def copy(self, tensor: Tensor, stored: StoredOrder | None, wanted: StoredOrder | None) -> int:
        """What one copy of a tensor from an order to another takes."""
        ...


@dataclass(frozen=True, slots=True)
class BytesRuler:
    """Measures bytes that are read and written."""

    dims: Mapping[str, int]
    ignores_passes: bool
    profile: Profile | None = None
    """The limits of a device, where some Transposes cost more than others by them."""
    parted: PartedBy | None = None
    """What reads again where nodes stay apart that a runtime joins, where that counts."""

    @property
    def is_uniform(self) -> bool:
        return self.profile is None

    def extra(self, draft: Draft, transport: Transport) -> int:
        counted = draft.moved_bytes if self.ignores_passes else draft.extra_bytes
        return counted(transport, self.dims) + self._read_again(draft, transport)

    def _read_again(self, draft: Draft, transport: Transport) -> int:
        if self.parted is None or not isinstance(draft, NodeDraft):
            return 0
        lead = transport.inputs[0] if transport.inputs else None
        parted = self.parted(draft.ways.view, lead)
        return 0 if parted is None else parted.bytes(self.dims)

    def copy(self, tensor: Tensor, stored: StoredOrder | None, wanted: StoredOrder | None) -> int:
        moved, lengths = tensor.bytes_copied(self.dims), tensor.lengths
        if self.profile is None or lengths is None:
            return moved
        if not isinstance(stored, Permutation) or not isinstance(wanted, Permutation):
            return moved
        if len(lengths) != stored.rank:
            return moved
        order = stored.inverse().then(wanted)
        return moved * self.profile.times(stored.reorder(lengths), order)


@dataclass(frozen=True, slots=True)
class TimeRuler:
    """Measures nanoseconds by the prices of a target."""

    dims: Mapping[str, int]
    prices: RuntimePrices
    parted: PartedBy

    @property
    def is_uniform(self) -> bool:
        return False

    def extra(self, draft: Draft, transport: Transport) -> int:
        changes, prices, dims = transport.changes, self.prices, self.dims
        views = len(changes.unsqueezes) + len(changes.reshapes) + len(changes.result_reshapes)
        kernels = max(0, len(changes.steps) - 1) + changes.copies
        moved = draft.moved_bytes(transport, dims)
        passed = draft.passed_bytes(transport, dims)
        inside = prices.turned(moved) + prices.stream(passed)
        form = 0
        if isinstance(draft, NodeDraft):
            view = draft.ways.view
            form = form_price(view, changes, prices, dims)
            lead = transport.inputs[0] if transport.inputs else None
            form += reduction_price(view, lead, prices, dims)
            parted = self.parted(view, lead)
            form += 0 if parted is None else parted.nanoseconds(prices, dims)
        return (views + kernels) * prices.node + inside + form

    def copy(self, tensor: Tensor, stored: StoredOrder | None, wanted: StoredOrder | None) -> int:
        value = tensor.value
        if not isinstance(stored, Permutation) or not isinstance(wanted, Permutation):
            return 0
        if tensor.lengths is None or value.dtype is None or len(tensor.lengths) != stored.rank:
            return self.prices.node
        shape, order = stored.reorder(tensor.lengths), stored.inverse().then(wanted)
        return least_price(self.prices, shape, order, item_bytes(value.dtype), self.dims)
