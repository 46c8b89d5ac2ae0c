"""Equations, and what has to be copied before a product of matrices can compute one."""

from __future__ import annotations

from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayout.layout.equation import Equation, copied_elements

LENGTHS = dict(zip("abhqkd", (2, 3, 5, 7, 11, 13), strict=True))


def copied(text: str) -> int:
    equation = Equation.of(text)
    terms = (*equation.terms, equation.explicit_result)
    return copied_elements(terms, [LENGTHS] * len(terms))


def size(term: str) -> int:
    found = 1
    for letter in term:
        found *= LENGTHS[letter]
    return found


@pytest.mark.parametrize(
    ("text", "transposed"),
    [
        ("bhqd,bhdk->bhqk", ()),
        ("bhdk,bhqd->bhqk", ()),
        ("bhqd,dk->bhqk", ()),
        ("bhqd,bhkd->bhqk", ("bhkd",)),
        ("bqhd,bkhd->bhqk", ("bqhd", "bkhd")),
        ("bhqk,bkhd->bqhd", ("bkhd", "bqhd")),
        ("bhqd,bhdk->bhkq", ("bhkq",)),
        ("bhdq,bhdk->bhkq", ("bhdk",)),
        ("adq,dk->aqk", ("adq",)),
        ("qd->dq", ("dq",)),
        ("qdk->kq", ("kq",)),
        ("qdk->qk", ()),
        ("qdd->qd", ()),
        ("qd,qd->qd", ()),
        ("qd,dk,kb->qb", ()),
        ("qd,kd,kb->qb", ("qd", "kb", "qb")),
        ("aqd,dk->qk", ()),
    ],
)
def test_what_a_plain_product_copies(text: str, transposed: tuple[str, ...]) -> None:
    assert copied(text) == sum(map(size, transposed))


def fewest_copied(left: str, right: str, result: str) -> int:
    """Of every order of operands and result in which they are a product, the nearest one."""
    shared = set(left) & set(right)
    batch, rows = shared & set(result), set(left) - shared
    found = [
        sum(
            size(stored)
            for stored, wanted in zip((left, right, result), places, strict=True)
            if stored != "".join(wanted)
        )
        for places in product(permutations(left), permutations(right), permutations(result))
        if is_product(places, (batch, rows))
        or is_product((places[1], places[0], places[2]), (batch, set(right) - shared))
    ]
    return min(found)


def is_product(places: tuple[tuple[str, ...], ...], groups: tuple[set[str], set[str]]) -> bool:
    (first, second, result), (batch, rows) = places, groups
    b, r = len(batch), len(batch) + len(rows)
    return (
        set(first[:b]) == batch
        and first[:b] == second[:b] == result[:b]
        and set(first[b:r]) == rows
        and first[b:r] == result[b:r]
        and first[r:] == second[b : len(second) - len(result[r:])]
        and second[len(second) - len(result[r:]) :] == result[r:]
    )


@given(st.permutations("aqd"), st.permutations("adk"), st.permutations("aqk"))
def test_it_is_the_least_over_all_orders_of_a_batch(
    left: list[str], right: list[str], result: list[str]
) -> None:
    terms = ["".join(letters) for letters in (left, right, result)]
    assert copied_elements(terms, [LENGTHS] * 3) == fewest_copied(*terms)


@given(st.permutations("qbd"), st.permutations("dk"), st.permutations("qbk"))
def test_it_is_the_least_over_all_orders_beside_a_matrix(
    left: list[str], right: list[str], result: list[str]
) -> None:
    terms = ["".join(letters) for letters in (left, right, result)]
    assert copied_elements(terms, [LENGTHS] * 3) == fewest_copied(*terms)


@pytest.mark.parametrize(
    ("text", "ranks", "axes"),
    [
        ("ij,jk->ik", (2, 2, 2), ("ij", "jk", "ik")),
        ("...ij,jk", (4, 2, 4), ("10ij", "jk", "10ik")),
        ("i...,...j->...ij", (3, 2, 4), ("i10", "0j", "10ij")),
        ("ij,jk->ik", (2, 3, 2), None),
        ("ij->ij", (2, 2, 2), None),
    ],
)
def test_the_axes_of_every_term(
    text: str, ranks: tuple[int, ...], axes: tuple[str, ...] | None
) -> None:
    assert Equation.of(text).axes(ranks) == axes
