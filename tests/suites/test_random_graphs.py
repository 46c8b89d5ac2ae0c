"""Random graphs of every operator that has a rule give the same numbers with less moved about."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from relayout.ops.measure import Objective
from tests.digests import digests_with
from tests.objectives import COUNTED
from tests.ops import law
from tests.suites.building_blocks import SETTINGS, rules
from tests.suites.optimising import Optimised, assert_same_interface, moved, optimised
from tests.suites.random_graphs import RandomGraph, graphs_for_all, random_graph

SEEDS = range(len(SETTINGS) * max(graphs_for_all(setting) for setting in SETTINGS))
"""Each operator is used at each opset."""

TOLERANCE = 2e-5


def assert_same_numbers(graph: RandomGraph, result: onnx.ModelProto) -> None:
    """Where all numbers are small integers, no order of summation excuses a difference."""
    wanted, found = graph.run(graph.model), graph.run(result)
    for (name, exact), expected, got in zip(graph.exact.items(), wanted, found, strict=True):
        law.compare(name, expected, got, 0.0 if exact else TOLERANCE)
        if exact:
            assert _content(got) == _content(expected), name


def assert_nothing_left(result: Optimised, objective: Objective) -> None:
    """A second run finds nothing, unless the first one reports that it did not look everywhere."""
    again = optimised(result.model, objective)
    if not result.notes:
        assert moved(again.after, objective) == moved(again.before, objective)


def check_random_graph(seed: int, objective: Objective) -> Optimised:
    graph = random_graph(seed)
    result = optimised(graph.model, objective)
    onnx.checker.check_model(result.model, full_check=True)
    assert_same_interface(graph.model, result.model)
    assert moved(result.after, objective) <= moved(result.before, objective)
    assert_same_numbers(graph, result.model)
    assert_nothing_left(result, objective)
    return result


@pytest.mark.parametrize("objective", COUNTED, ids=lambda objective: objective.value)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_graph_is_still_right(seed: int, objective: Objective) -> None:
    check_random_graph(seed, objective)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_graph_on_the_factors_of_its_axes_is_still_right(seed: int) -> None:
    graph = random_graph(seed)
    result = optimised(graph.model, Objective.COUNT, by_factors=True)
    onnx.checker.check_model(result.model, full_check=True)
    assert_same_interface(graph.model, result.model)
    assert_same_numbers(graph, result.model)


def test_axes_are_split_in_some_random_graphs() -> None:
    plain = [optimised(random_graph(seed).model, Objective.COUNT) for seed in SEEDS]
    split = [
        optimised(random_graph(seed).model, Objective.COUNT, by_factors=True) for seed in SEEDS
    ]
    assert sum(one.model != other.model for one, other in zip(plain, split, strict=True)) > 10


def test_every_operator_with_a_rule_occurs() -> None:
    seen = {op_type for seed in SEEDS for op_type in random_graph(seed).op_types}
    assert not rules() - seen


def test_most_transposes_go() -> None:
    results = [optimised(random_graph(seed).model, Objective.COUNT) for seed in SEEDS]
    given = sum(result.before.transposes for result in results)
    left = sum(result.after.transposes for result in results)
    assert left < 0.7 * given, f"{given} -> {left}"


def test_a_graph_is_optimised_alike_in_every_process() -> None:
    digests = [digests_with(_SCRIPT, hash_seed) for hash_seed in ("0", "1", "4711")]
    assert digests[0]
    assert digests[0] == digests[1] == digests[2]


_SCRIPT = """
import hashlib
from tests.objectives import COUNTED
from tests.suites.optimising import optimised
from tests.suites.random_graphs import random_graph

for seed in range(14):
    for objective in COUNTED:
        result = optimised(random_graph(seed).model, objective).model
        print(hashlib.sha256(result.SerializeToString(deterministic=True)).hexdigest())
"""


def _content(value: Any) -> Any:
    array = np.asarray(value)
    return array.tolist() if array.dtype == object else np.ascontiguousarray(array).tobytes()
