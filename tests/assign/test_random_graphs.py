"""Every strategy on random graphs, for a runtime that is channels first and one that is last."""

from __future__ import annotations

import onnx
import pytest

from relayout.assign.strategies.registry import EXACT, STRATEGIES
from relayout.targets.target import NHWC, ONNX, Target
from tests.assign.writing import written
from tests.ops import law
from tests.suites.random_graphs import random_graph

TOLERANCE = 2e-5


@pytest.mark.parametrize("seed", range(0, 60, 3))
@pytest.mark.parametrize("target", [ONNX, NHWC], ids=lambda target: str(target.name))
def test_numbers_are_the_same_and_nothing_beats_the_exact_choice(target: Target, seed: int) -> None:
    graph = random_graph(seed)
    expected = graph.run(graph.model)
    costs = {}
    for name in STRATEGIES:
        result = written(graph.model, name, target)
        costs[name] = result.cost
        onnx.checker.check_model(result.model, full_check=True)
        pairs = zip(graph.exact.items(), expected, graph.run(result.model), strict=True)
        for (output, exact), wanted, found in pairs:
            law.compare(f"{name}: {output}", wanted, found, 0.0 if exact else TOLERANCE)
    assert costs[EXACT.name] == min(costs.values())
    assert costs["preset-cost"] <= costs["preset"]
