"""Branch and bound on the linear relaxation; the tree it builds is the proof."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic

from relayout.assign.bound import cost_of, every_option, leaf_bound, restricted
from relayout.assign.component import Branch, Component, Decided, Leaf, Proof
from relayout.assign.questions import Allowed
from relayout.assign.strategies.descent import descend
from relayout.assign.strategies.fixed import fixed_leaf
from relayout.assign.strategies.relaxation import OptionFractions, Relaxation

_ROUNDS = 8
"""How often the digits of one relaxation are refined; each round adds some five."""
_WHOLE = 0.999
"""A member whose largest fraction is above this has but one option."""
_EQUAL = 1e-6
"""OptionFractions that differ by less are as large."""


@dataclass(slots=True)
class _Node:
    """A case of the tree: its own leaf until it is split into cases."""

    allowed: Allowed
    leaf: Leaf
    bound: int
    fractions: list[OptionFractions]
    member: int = -1
    cases: list[tuple[tuple[int, ...], _Node]] = field(default_factory=list)

    def proof(self) -> Proof:
        if not self.cases:
            return self.leaf
        return Branch(self.member, tuple((options, case.proof()) for options, case in self.cases))

    def lowest(self) -> int:
        if not self.cases:
            return self.bound
        return max(self.bound, min(case.lowest() for _, case in self.cases))


class _BranchAndBound:
    def __init__(self, component: Component, deadline: float) -> None:
        self.component = component
        self.deadline = deadline
        self.relaxation = Relaxation(component)
        self.chosen: tuple[int, ...] = (0,) * len(component.members)
        self.cost = cost_of(component, self.chosen)
        self._offer(descend(component, self.chosen, deadline))

    def run(self) -> Decided:
        root = self._node(every_option(self.component))
        todo = [root]
        while todo and monotonic() < self.deadline:
            node = todo.pop()
            if node.bound < self.cost:
                todo += self._split(node)
        kind = "tree" if root.cases else "dual"
        bound = min(root.lowest(), self.cost)
        return Decided(self.component, self.chosen, self.cost, bound, kind, root.proof())

    def _node(self, allowed: Allowed) -> _Node:
        """The relaxation of a case; what it suggests may be a better choice."""
        if all(len(options) == 1 for options in allowed):
            chosen = tuple(options[0] for options in allowed)
            self._offer(chosen)
            leaf = fixed_leaf(self.component, chosen)
            return _Node(allowed, leaf, cost_of(self.component, chosen), [])
        return self._relaxed(allowed)

    def _relaxed(self, allowed: Allowed) -> _Node:
        """The relaxation of a case, made exact where it is whole and yet leaves a gap."""
        dual, leaf = self.relaxation.programme.nothing(), Leaf(1, {}, {})
        node = _Node(allowed, leaf, leaf_bound(self.component, leaf, allowed), [])
        for _ in range(_ROUNDS):
            gap, left = self.cost - node.bound, self.deadline - monotonic()
            answer = self.relaxation.improve(dual, allowed, gap, left)
            if answer is None:
                break
            fractions, dual = answer
            leaf = self.relaxation.leaf(dual)
            bound = leaf_bound(self.component, leaf, allowed)
            if node.fractions and bound <= node.bound:
                break
            node = _Node(allowed, leaf, bound, fractions)
            self._round(fractions)
            if node.bound >= self.cost or min(map(max, fractions)) < _WHOLE:
                break
        return node

    def _round(self, fractions: list[OptionFractions]) -> None:
        """Offer the choice the relaxation suggests; of options it likes equally, the first."""
        rounded = tuple(map(_likeliest, fractions))
        self._offer(rounded)
        self._offer(descend(self.component, rounded, self.deadline))

    def _offer(self, chosen: tuple[int, ...]) -> None:
        if chosen == self.chosen:
            return
        cost = cost_of(self.component, chosen)
        if cost < self.cost:
            self.chosen, self.cost = chosen, cost

    def _split(self, node: _Node) -> list[_Node]:
        """Two cases over the member the relaxation is least sure of."""
        if not node.fractions:
            return []
        pairs = zip(node.fractions, node.allowed, strict=True)
        sure = [max(each) if len(open_) > 1 else 2.0 for each, open_ in pairs]
        node.member = sure.index(min(sure))
        fractions = node.fractions[node.member]
        likely = fractions.index(max(fractions))
        rest = tuple(option for option in node.allowed[node.member] if option != likely)
        cases = [(likely,), rest]
        node.cases = [(c, self._node(restricted(node.allowed, node.member, c))) for c in cases]
        return [case for _, case in reversed(node.cases)]


def _likeliest(fractions: OptionFractions) -> int:
    """The option with the largest fraction, the first of those that are about as large."""
    largest = max(fractions) - _EQUAL
    return next(option for option, fraction in enumerate(fractions) if fraction > largest)


def solve_by_branching(component: Component, deadline: float) -> Decided:
    """The best choice found until the deadline, with the bound proved until then."""
    return _BranchAndBound(component, deadline).run()
