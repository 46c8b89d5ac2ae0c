"""Orders that end in constants: as few Transposes as trying every order finds."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from relayout import optimize
from tests.suites.feature_graphs import FeatureGraph, feature_graph, fewest_transposes

GRAPHS = 200


def assert_least(graph: FeatureGraph) -> tuple[int, int]:
    """As few as can be, with the same numbers; how many there were, and how many are left."""
    result = optimize(graph.model, minimize="count", einsum=False, verify=False)
    assert result.after.transposes <= fewest_transposes(graph), f"seed {graph.seed}"
    least = fewest_transposes(graph, copies_features=True)
    assert result.after.transposes >= least, f"seed {graph.seed}: the bound is wrong"
    rng = np.random.default_rng(graph.seed)
    feeds = {
        given.name: rng.normal(size=[d.dim_value for d in given.type.tensor_type.shape.dim])
        for given in graph.inputs
    }
    singles = {name: array.astype(np.float32) for name, array in feeds.items()}
    wanted = ReferenceEvaluator(graph.model).run(None, singles)
    got = ReferenceEvaluator(result.model).run(None, singles)
    for one, other in zip(wanted, got, strict=True):
        scale = np.abs(np.asarray(one)).max(initial=1.0)
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-4 * scale)
    return result.before.transposes, result.after.transposes


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_as_few_transposes_as_every_order_gives(seed: int) -> None:
    assert_least(feature_graph(seed))


def test_the_graphs_are_worth_it() -> None:
    """Some lose all their Transposes, some keep some, and not all are alike."""
    found = [fewest_transposes(feature_graph(seed)) for seed in range(GRAPHS)]
    bounds = [
        fewest_transposes(feature_graph(seed), copies_features=True) for seed in range(GRAPHS)
    ]
    differing = [seed for seed in range(GRAPHS) if found[seed] != bounds[seed]]
    assert len(differing) <= GRAPHS // 20
    assert found.count(0) > GRAPHS // 10
    assert sum(count > 0 for count in found) > GRAPHS // 10
