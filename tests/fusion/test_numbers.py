"""Fused models are valid, run with the same bytes in both runtimes, and come back exactly."""

from __future__ import annotations

import onnx
import pytest

from relayout.api import optimize
from relayout.cli.demo_model import network
from relayout.fusion.partition import MODES, RELAYOUT, TVM
from relayout.graph.io.inline import inlined
from relayout.graph.io.load import load
from relayout.optimizer.fuse import fuse
from tests.fusion.networks import mobilenet_v2, resnet18, transformer_block
from tests.fusion.random_networks import random_network
from tests.fusion.running import assert_runs_alike
from tests.fusion.tables import TABLE, Row
from tests.ops import law
from tests.rewrite.rewriting import parse
from tests.suites.backend import case, case_names
from tests.suites.random_graphs import random_graph


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


LENGTHS_OF_THE_RUN = """g (float["N",1,"M"] x) => (float["A","B"] y)
    <int64[1] one = {1}, int64[1] start = {0}, int64[1] end = {1}, int64[2] picked = {1,0}>
    { e = Exp(x) s = Squeeze(e, one) c = Slice(s, start, end, one) t = Gather<axis=0>(c, picked)
      y = Neg(t) }"""


@pytest.mark.parametrize("mode", [RELAYOUT.name, TVM.name])
def test_lengths_known_only_at_run_time(mode: str) -> None:
    """Squeeze, Slice with constant bounds and Gather are in a group all the same."""
    given = parse(LENGTHS_OF_THE_RUN)
    result = fused(given, mode)
    (group,) = result.functions
    assert [n.op_type for n in group.node if n.op_type != "Constant"] == [
        *("Exp", "Squeeze", "Slice", "Gather", "Neg")
    ]
    assert_runs_alike(given, result)


NETWORKS = {
    "demo": network,
    "resnet18": resnet18,
    "mobilenet with Clip": mobilenet_v2,
    "transformer block": transformer_block,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_run_alike(name: str, mode: str) -> None:
    given = NETWORKS[name]()
    result = fused(given, mode)
    assert result.functions
    assert_runs_alike(given, result)


def test_a_network_with_kernels_channels_last_runs_alike() -> None:
    given = optimize(network(), target="nhwc", verify=False).model
    result = fused(given, "relayout")
    assert "conv2d_b_relu_0" in [function.name for function in result.functions]
    assert_runs_alike(given, result)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(20))
def test_random_networks_run_alike(seed: int, mode: str) -> None:
    given = random_network(seed)
    assert_runs_alike(given, fused(given, mode))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(0, 200, 6))
def test_random_graphs_run_alike(seed: int, mode: str) -> None:
    graph = random_graph(seed)
    result = fused(graph.model, mode)
    onnx.checker.check_model(result, full_check=True)
    before, after = graph.run(graph.model), graph.run(result)
    for name, wanted, found in zip(graph.exact, before, after, strict=True):
        law.compare(name, wanted, found, 0.0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("mode", MODES)
def test_backend_models_of_several_nodes_are_still_right(mode: str) -> None:
    """Many are operators spelled out as graphs, with shapes computed and with control flow."""
    names = [(kind, name) for kind, name in case_names() if "_expanded" in name or "loop" in name]
    cases = [case(kind, name) for kind, name in names[::12]]
    right = [each for each in cases if load(each.model).frozen is None and each.passes()]
    assert len(right) > 20
    made = 0
    for each in right:
        result = fused(each.model, mode)
        made += len(result.functions)
        each.run(result)
    assert made > 80


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
