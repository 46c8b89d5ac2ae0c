"""Makes records of the regions that a strategy decided about."""

from __future__ import annotations

from collections.abc import Iterator

from relayout.assign.assignment import RegionChoice
from relayout.assign.choose import Decision
from relayout.assign.problem import copies
from relayout.assign.strategies.regions import stored_orders
from relayout.layout.shuffle import Shuffle
from relayout.report.regions import BorderRecord, RegionRecord


def region_records(decision: Decision) -> tuple[RegionRecord, ...]:
    """What is reported about each region; none where the strategy does not go by regions."""
    naming = _Naming(decision)
    return tuple(naming.record(region) for region in decision.assignment.regions)


class _Naming:
    """Gives the numbers of a problem the names that a model has for them."""

    def __init__(self, decision: Decision) -> None:
        self.problem = decision.formulation.problem
        self.orders = [tensor.orders for tensor in decision.formulation.tensors.values()]
        self.choice = decision.assignment.choice
        self.copies = copies(self.problem, self.choice)
        self.stored = stored_orders(self.problem, self.choice)
        self.readers: dict[tuple[int, int], set[int]] = {}
        for index, operator in enumerate(self.problem.operators):
            reads = operator.variants[self.choice[index]].reads
            for port in zip(operator.operands, reads, strict=True):
                self.readers.setdefault(port, set()).add(index)

    def record(self, region: RegionChoice) -> RegionRecord:
        operators, values = self.problem.operators, self.problem.values
        made = [value for index in region.members for value in operators[index].results]
        # What joined a region of features counts as one; some of them may be stored as given.
        shown = min(made, key=lambda value: (values[value].is_plain, not self.stored[value]))
        found = values[shown].layout_class
        return RegionRecord(
            members=tuple(operators[index].name for index in region.members),
            layout_class="?" if found is None else found.value,
            given=self._layout(shown, 0),
            layout=self._layout(shown, self.stored[shown]),
            flipped=region.is_flipped,
            why=region.why,
            borders=tuple(self._borders(region)),
        )

    def _borders(self, region: RegionChoice) -> Iterator[BorderRecord]:
        members = set(region.members)
        for value, stored, wanted in self.copies:
            readers = self.readers[value, wanted]
            is_made_here = self.problem.producers[value] in members
            is_border = readers - members if is_made_here else readers & members
            if is_border:
                layouts = self._layout(value, stored), self._layout(value, wanted)
                yield BorderRecord(self.problem.values[value].name, not is_made_here, *layouts)

    def _layout(self, value: int, place: int) -> str:
        """The letters of its axes, or its class and how they were permuted."""
        found, order = self.problem.values[value], self.orders[value][place]
        is_given = order is None or order.is_identity
        if found.layout is not None and not isinstance(order, Shuffle):
            return str(found.layout if order is None else found.layout.stored(order))
        name = "?" if found.layout_class is None else found.layout_class.value
        return name if is_given else f"{name} {order}"
