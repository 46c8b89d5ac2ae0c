"""The three passes on graphs of colours, and the table of nearest known operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import pytest

from relayout.infer.nearest import nearest_known
from relayout.infer.transmission import Origin, Transmission, majority, transmit


@dataclass(frozen=True, slots=True)
class Node:
    """Reads and makes values named by letters; a known one fixes their colours."""

    reads: str
    makes: str
    known: tuple[tuple[str, str], ...] = ()
    relabels: bool = False


class Paint:
    """Nodes that make what they read, unless they are known or relabel."""

    def results(self, node: Node) -> Sequence[str]:
        return node.makes

    def known(self, node: Node) -> Sequence[tuple[str, str]]:
        return node.known

    def elect(self, votes: Sequence[str]) -> str:
        return majority(votes)

    def before(self, node: Node, colours: dict[str, str]) -> Iterator[tuple[str, str]]:
        for made in node.makes:
            if made in colours and not node.relabels:
                yield from ((value, colours[made]) for value in node.reads)

    def default(self, _value: str) -> str:
        return "plain"

    def after(self, node: Node, colours: dict[str, str]) -> Iterator[tuple[str, str]]:
        carried = majority([colours[value] for value in node.reads])
        yield from ((value, "plain" if node.relabels else carried) for value in node.makes)

    def wanted(self, node: Node, colours: dict[str, str]) -> Iterator[tuple[str, str]]:
        if node.known:
            yield from ((v, colour) for v, colour in node.known if v in node.reads)
        elif not node.relabels:
            yield from ((value, colours[node.makes[0]]) for value in node.reads)


def painted(nodes: Sequence[Node], sources: str) -> Transmission[str, str]:
    return transmit(nodes, sources, Paint())


def test_six_nodes() -> None:
    """C fixes B to peach and A to green; turquoise from E meets green from D at F."""
    known = (("b", "peach"), ("a", "green"), ("c", "turquoise"))
    nodes = [Node("ba", "c", known), Node("a", "d"), Node("c", "e"), Node("ed", "f")]
    found = painted(nodes, "ab")
    assert "".join(sorted(v for v, o in found.origins.items() if o is Origin.BACKWARDS)) == "abc"
    assert [found.colours[value] for value in "badcef"] == [
        *("peach", "green", "green", "turquoise", "turquoise", "turquoise")
    ]
    assert found.conversions == {("d", "turquoise"): 1}


def test_two_relabelling_nodes_in_a_row() -> None:
    nodes = [
        Node("x", "a", (("x", "conv"), ("a", "conv"))),
        Node("a", "b", relabels=True),
        Node("b", "c"),
        Node("c", "g"),
        Node("g", "d", relabels=True),
        Node("d", "y", (("d", "gemm"), ("y", "gemm"))),
    ]
    found = painted(nodes, "x")
    assert [found.colours[v] for v in "xabcgdy"] == [*["conv"] * 2, *["plain"] * 3, *["gemm"] * 2]
    assert [v for v in "abcgd" if found.origins[v] is Origin.FORWARDS] == ["b", "c", "g"]
    assert not found.conversions


def test_one_conversion_serves_all_readers_that_want_it() -> None:
    red, blue = ((("x", "red"), (made, "red")) for made in "pq"), (("x", "blue"), ("r", "blue"))
    nodes = [*(Node("x", known[1][0], known) for known in red), Node("x", "r", blue)]
    found = painted(nodes, "x")
    assert found.colours["x"] == "red"
    assert found.conversions == {("x", "blue"): 1}
    found = painted([Node("x", "x2"), *nodes, Node("x", "s", (("x", "blue"), ("s", "blue")))], "x")
    assert found.conversions == {("x", "blue"): 2}


def test_nearest_is_by_steps_then_by_place_and_ends_have_entries() -> None:
    """0 and 1 are known; 2 reads both, 3 reads 2 and 1, 4 reads 3, 5 reads nothing known."""
    before = [[], [], [1, 0], [2, 1], [3], []]
    known = [True, True, False, False, False, False]
    assert nearest_known(range(6), before, known) == [
        *((0, 0), (0, 1), (1, 0), (1, 1), (2, 1), None)
    ]
    after = [[2], [2, 3], [3], [4], [], []]
    ends = [False, False, False, False, True, False]
    assert nearest_known(reversed(range(6)), after, ends) == [
        *((3, 4), (2, 4), (2, 4), (1, 4), (0, 4), None)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_nearest_is_what_a_search_finds(seed: int) -> None:
    chance = Random(seed)
    size = 30
    before = [chance.sample(range(i), min(i, chance.randint(0, 3))) for i in range(size)]
    known = [chance.random() < 0.2 for _ in range(size)]
    assert nearest_known(range(size), before, known) == [
        _searched(start, before, known) for start in range(size)
    ]


def _searched(
    start: int, before: Sequence[Sequence[int]], known: Sequence[bool]
) -> tuple[int, int] | None:
    level, steps = {start}, 0
    while level:
        found = [index for index in sorted(level) if known[index]]
        if found:
            return steps, found[0]
        level, steps = {other for index in level for other in before[index]}, steps + 1
    return None
