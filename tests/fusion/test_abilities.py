"""A target whose kernels can do less gets groups that it can run."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from relayout.fusion.groups import NONE, Abilities
from relayout.fusion.partition import partition
from relayout.fusion.traffic import traffic_of
from relayout.graph.region import regions_of
from tests.fusion.checking import check_partition
from tests.fusion.grouping import groups, region_of
from tests.fusion.random_networks import random_network
from tests.fusion.tables import TABLE
from tests.rewrite.rewriting import to_ir

GRAPHS = {row.name: row.graph for row in TABLE}
NEEDED = {
    "conv, relu, out and sigmoid": "results",
    "sum, sqrt": "rows",
    "softmax by hand": "rows",
    "relu, conv": "prologues",
    "conv, transpose": "moves",
    "three convs of one tensor": "siblings",
    "relu shared by two convs": "repeats",
}


def test_without_any_ability_the_groups_are_those_of_tvm() -> None:
    for seed in range(20):
        region = next(regions_of(to_ir(random_network(seed))))
        assert groups(partition(region, abilities=NONE)) == groups(partition(region, "tvm"))


@pytest.mark.parametrize(("name", "ability"), NEEDED.items(), ids=NEEDED)
def test_each_ability_is_needed_for_something(name: str, ability: str) -> None:
    region = region_of(GRAPHS[name])
    whole = partition(region)
    less = partition(region, abilities=replace(Abilities(), **{ability: False}))
    assert traffic_of(less).kernels > traffic_of(whole).kernels


def test_all_abilities_are_tried() -> None:
    assert {field.name for field in fields(Abilities)} == set(NEEDED.values())


def test_a_lacking_ability_is_the_reason() -> None:
    region = region_of(GRAPHS["relu, conv"])
    (refusal,) = partition(region, abilities=replace(Abilities(), prologues=False)).refusals
    assert refusal.code == "capability"
    assert refusal.reason == "the target has no kernel that can include Relu r"


@pytest.mark.parametrize("ability", sorted(set(NEEDED.values())))
def test_fewer_abilities_never_cost_more_than_tvm(ability: str) -> None:
    for seed in range(15):
        region = next(regions_of(to_ir(random_network(seed))))
        less = partition(region, abilities=replace(Abilities(), **{ability: False}))
        check_partition(less)
        theirs, ours = traffic_of(partition(region, "tvm")), traffic_of(less)
        assert ours.kernels <= theirs.kernels
        assert ours.bytes_moved <= theirs.bytes_moved
