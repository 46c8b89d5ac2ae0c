"""Chains of views: what they are, that equal chains are equal, and how they are written."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import pytest

from relayout.layout.blocks import Size, Sizes, product, sizes_of
from relayout.layout.permutation import Permutation
from relayout.layout.strided_view import Link, View, composed

CHAINS = 20_000
COMPARED = 10_000

BINDINGS: tuple[Mapping[str, int], ...] = (
    {"N": 2, "S": 3, "T": 5},
    {"N": 7, "S": 4, "T": 3},
    {"N": 3, "S": 7, "T": 2},
    {"N": 1, "S": 1, "T": 1},
)
"""Pairwise coprime lengths, so that no equality holds by accident, and 1."""


# numbers


def numbers(sizes: Sequence[Size], lengths: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(size.number * prod(lengths[name] for _, name in size.symbols) for size in sizes)


def run(source: Sizes, links: Sequence[Link], lengths: Mapping[str, int]) -> np.ndarray:
    """Where each element of the result lies in the source."""
    shape = numbers(source, lengths)
    found = np.arange(prod(shape)).reshape(shape)
    for link in links:
        if isinstance(link, Permutation):
            found = found.transpose(link.axes)
        else:
            found = found.reshape(numbers(link, lengths))
    return found


# random chains


@dataclass(frozen=True, slots=True)
class RandomChain:
    source: Sizes
    links: tuple[Link, ...]

    @property
    def bindings(self) -> Sequence[Mapping[str, int]]:
        return BINDINGS if product(self.source).symbols else BINDINGS[:1]


def random_chain(seed: int) -> RandomChain:
    """Reshapes and Transposes in any order; every other chain has symbols."""
    choose = random.Random(seed)
    factors = [Size(choose.choice((2, 2, 2, 3, 3, 5))) for _ in range(choose.randint(1, 5))]
    if seed % 2:
        factors += [Size(1, (("named", name),)) for name in choose.choices("NST", k=2)]
    source = random_shape(choose, factors)
    links: list[Link] = []
    rank = len(source)
    for _ in range(choose.randint(1, 7)):
        if choose.random() < 0.5:
            links.append(Permutation(tuple(choose.sample(range(rank), rank))))
        else:
            links.append(random_shape(choose, factors))
            rank = len(links[-1])
    return RandomChain(source, tuple(links))


def random_shape(choose: random.Random, factors: Sequence[Size]) -> Sizes:
    """Any lengths with the product of the factors, often 1 among them."""
    places = [choose.randrange(5) for _ in factors]
    kept = sorted({*places, choose.randrange(5)})
    return tuple(
        product([factor for factor, at in zip(factors, places, strict=True) if at == place])
        for place in kept
    )


def check_chain(chain: RandomChain) -> int:
    """Every way to write the chain gives its numbers; the number of views it takes."""
    views = composed(chain.source, chain.links)
    written = list(_emissions(views))
    for lengths in chain.bindings:
        expected = run(chain.source, chain.links, lengths)
        for links in written:
            assert np.array_equal(run(chain.source, links, lengths), expected)
    return len(views)


def _emissions(views: Sequence[View]) -> Iterator[tuple[Link, ...]]:
    """The first emission of every view, combined with each emission of one of them."""
    ways = [view.emissions for view in views]
    shortest = [links for links, *_ in ways]
    for at, way in enumerate(ways):
        for links in way:
            yield tuple(
                link for part in (*shortest[:at], links, *shortest[at + 1 :]) for link in part
            )


def test_random_chains_agree_with_numpy() -> None:
    views = [check_chain(random_chain(seed)) for seed in range(CHAINS)]
    assert views.count(1) > CHAINS * 0.8
    assert max(views) > 1, "no chain met a border between divisors"


def test_chains_are_equal_exactly_if_their_index_maps_are() -> None:
    """Lengths without common factors with each other or a number distinguish all symbolic maps."""
    lengths = {"N": 7, "S": 11, "T": 13}
    by_map: dict[tuple[object, ...], View] = {}
    by_view: dict[View, tuple[object, ...]] = {}
    met_again = 0
    for seed in range(COMPARED):
        chain = random_chain(seed)
        view = View.along(chain.source, chain.links)
        if view is None:
            continue
        indices = run(chain.source, chain.links, lengths)
        key = (chain.source, view.shape, indices.tobytes())
        met_again += key in by_map
        assert by_map.setdefault(key, view) == view
        assert by_view.setdefault(view, key) == key
    assert met_again > COMPARED / 20


def test_a_detour_leaves_no_trace() -> None:
    for seed in range(2_000):
        chain = random_chain(seed)
        view = View.along(chain.source, chain.links)
        if view is None:
            continue
        choose = random.Random(seed)
        order = Permutation(tuple(choose.sample(range(len(view.shape)), len(view.shape))))
        detour: list[Link] = [(product(view.shape),), view.shape, order, order.inverse()]
        assert composed(chain.source, [*chain.links, *detour]) == [view]
        back = view.inverse()
        assert back.inverse() == view
        assert composed(chain.source, [*chain.links, *back.emissions[0]]) == [View.of(chain.source)]


# what is and what is not a view


def dims(*lengths: int | str) -> Sizes:
    return sizes_of(lengths, "source")


def order(axes: str) -> Permutation:
    return Permutation(tuple(map(int, axes)))


def test_a_reshape_across_a_border_does_not_break_a_chain() -> None:
    view = View.along(dims(4, 3), [dims(6, 2), order("10")])
    assert view is not None
    assert view.emissions[0] == (dims(6, 2), order("10"))


def test_a_transpose_across_a_border_is_a_break() -> None:
    links: list[Link] = [order("10"), dims(6, 2), order("10")]
    assert View.along(dims(3, 4), links) is None
    assert len(composed(dims(3, 4), links)) == 2


def test_a_broken_chain_and_its_inverse_cancel() -> None:
    there: list[Link] = [order("10"), dims(6, 2), order("10")]
    back: list[Link] = [order("10"), dims(4, 3), order("10")]
    assert composed(dims(3, 4), [*there, *back]) == [View.of(dims(3, 4))]


def test_symbols_are_divided_only_where_that_is_exact() -> None:
    assert View.along(dims("N", "S", 6), [dims("N", "S", 2, 3), order("0213")]) is not None
    assert View.along(dims("N", 6), [order("10"), dims(2, 3, "N"), order("102")]) is not None
    assert View.along(dims("N", "S"), [order("10"), dims("N", "S"), order("10")]) is None


def test_a_symbolic_length_is_never_taken_for_one() -> None:
    view = View.along(dims("N", 4), [order("10")])
    assert view is not None
    assert view.moves
    unit = View.along(dims(1, 4), [order("10")])
    assert unit is not None
    assert not unit.moves


def test_elements_are_neither_lost_nor_made() -> None:
    with pytest.raises(ValueError, match="elements"):
        View.of(dims("N", 4)).then(dims("N", 5))


def test_without_elements_only_the_shape_matters() -> None:
    view = View.along(dims(0, "N", 3), [order("210"), dims(0, 7), order("10")])
    assert view is not None
    assert view.emissions == [(dims(7, 0),)]


# how views are written


@pytest.mark.parametrize(
    ("source", "links", "written"),
    [
        pytest.param(
            dims("N", "H", "W", 12),
            [dims("N", "H", "W", 12), order("0312")],
            (order("0312"),),
            id="one Transpose",
        ),
        pytest.param(
            dims("N", 5, 6, 12),
            [dims("N", 30, 12), order("021"), dims("N", 12, 5, 6)],
            (order("0312"),),
            id="over the axes of the source",
        ),
        pytest.param(
            dims("N", 12, 5, 6),
            [order("0231"), dims("N", 30, 12), order("021")],
            (dims("N", 12, 30),),
            id="tokens and back",
        ),
        pytest.param(
            dims("B", "S", 12),
            [dims("B", "S", 3, 4), order("0213")],
            (dims("B", "S", 3, 4), order("0213")),
            id="head split",
        ),
        pytest.param(
            dims("B", 3, "S", 4),
            [order("0213"), dims("B", "S", 12)],
            (order("0213"), dims("B", "S", 12)),
            id="head merge",
        ),
        pytest.param(
            dims(2, 12, 5, 6),
            [dims(2, 3, 4, 5, 6), order("02134"), dims(2, 12, 5, 6)],
            (dims(2, 3, 4, 30), order("0213"), dims(2, 12, 5, 6)),
            id="channel shuffle",
        ),
        pytest.param(
            dims("N", 12, 5, 6),
            [dims("N", 3, 2, 2, 5, 6), order("014253"), dims("N", 3, 10, 12)],
            (dims("N", 3, 2, 2, 5, 6), order("014253"), dims("N", 3, 10, 12)),
            id="pixel shuffle",
        ),
        pytest.param(
            dims(1, 5, 1, 6), [order("2301")], (order("0321"),), id="unit axes stay where they were"
        ),
    ],
)
def test_emission(source: Sizes, links: list[Link], written: tuple[Link, ...]) -> None:
    view = View.along(source, links)
    assert view is not None
    assert view.emissions[0] == written


@pytest.mark.parametrize(
    ("source", "there", "back"),
    [
        (
            dims("N", 12, "H", "W"),
            [dims("N", 3, 2, 2, "H", "W"), order("014253")],
            [order("013524"), dims("N", 12, "H", "W")],
        ),
        (
            dims("B", 14, 21, 5),
            [dims("B", 2, 7, 3, 7, 5), order("013245"), (product(dims("B", 6)), *dims(7, 7, 5))],
            [dims("B", 2, 3, 7, 7, 5), order("013245"), dims("B", 14, 21, 5)],
        ),
        (dims("B", "S", 12), [dims("B", "S", 3, 4), order("0213")], [order("0213")]),
    ],
    ids=["pixel shuffle", "window partition", "head split"],
)
def test_a_pair_cancels(source: Sizes, there: list[Link], back: list[Link]) -> None:
    assert View.along(source, [*there, *back, source]) == View.of(source)
