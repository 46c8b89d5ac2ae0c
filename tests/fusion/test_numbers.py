"""Fused models are valid, run with the same bytes in both runtimes, and come back exactly."""

from __future__ import annotations

import onnx
import pytest

from relayout.demo import network
from relayout.fused import fuse
from relayout.graph.inline import inlined
from tests.fusion.running import assert_runs_alike
from tests.fusion.tables import TABLE, Row
from tests.ops import law
from tests.rewrite.rewriting import parse
from tests.suites.random_graphs import random_graph

MODES = ("relayout", "tvm")


def fused(given: onnx.ModelProto, mode: str) -> onnx.ModelProto:
    """The model with its groups, of which it is known that they can be taken apart."""
    result = fuse(given, mode=mode, verify=False).model
    back, notices = inlined(result)
    assert notices == []
    assert back.SerializeToString(deterministic=True) == given.SerializeToString(deterministic=True)
    return result


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_known_graphs_run_alike(row: Row, mode: str) -> None:
    given = parse(row.graph)
    assert_runs_alike(given, fused(given, mode))


@pytest.mark.parametrize("mode", MODES)
def test_the_network_of_the_demo_runs_alike(mode: str) -> None:
    given = network()
    result = fused(given, mode)
    assert result.functions
    assert_runs_alike(given, result)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(0, 200, 4))
def test_random_graphs_run_alike(seed: int, mode: str) -> None:
    graph = random_graph(seed)
    result = fused(graph.model, mode)
    onnx.checker.check_model(result, full_check=True)
    before, after = graph.run(graph.model), graph.run(result)
    for name, wanted, found in zip(graph.exact, before, after, strict=True):
        law.compare(name, wanted, found, 0.0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(3))
def test_a_fused_model_is_fused_alike(seed: int, mode: str) -> None:
    """Groups are taken apart before new ones are chosen, whichever mode made them."""
    given = random_graph(seed).model
    once = fused(given, mode)
    for other in MODES:
        again = fuse(fused(given, other), mode=mode, verify=False).model
        assert again.SerializeToString(deterministic=True) == once.SerializeToString(
            deterministic=True
        )
