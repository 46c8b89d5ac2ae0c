"""Whole networks: no more kernels than TVM was seen to need, in either layout."""

from __future__ import annotations

import onnx
import pytest

from relayout.api import optimize
from relayout.fusion.partition import partition
from relayout.fusion.traffic import traffic_of
from relayout.graph.region import regions_of
from tests.fusion.checking import check_modes
from tests.fusion.networks import mobilenet_v2, resnet18, transformer_block
from tests.rewrite.rewriting import to_ir

NETWORKS = {
    "resnet18": (resnet18(), 24),
    "mobilenet with Clip": (mobilenet_v2("Clip"), 42),
    "mobilenet with HardSwish": (mobilenet_v2("HardSwish"), 42),
    "mobilenet with Relu": (mobilenet_v2("Relu"), 42),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_kernels_channels_first(name: str) -> None:
    model, most = NETWORKS[name]
    tvm, ours = check_modes(next(regions_of(to_ir(model))))
    assert traffic_of(ours).kernels <= most
    assert traffic_of(tvm).kernels <= most


@pytest.mark.parametrize("name", NETWORKS)
def test_kernels_channels_last(name: str) -> None:
    """TVM needs 69 kernels and 54 permutations for a network with Clip or HardSwish."""
    model, most = NETWORKS[name]
    result = optimize(model, target="nhwc", verify=False)
    region = next(regions_of(result.loaded.ir))
    assert sum(node.op_type == "Transpose" for node in region.graph) <= 2
    _tvm, ours = check_modes(region)
    assert traffic_of(ours).kernels <= most + 1


def test_a_transformer_block_written_out() -> None:
    model = transformer_block()
    onnx.checker.check_model(model, full_check=True)
    tvm, ours = check_modes(next(regions_of(to_ir(model))))
    assert traffic_of(tvm).kernels == 24
    assert traffic_of(ours).kernels == 7
    assert traffic_of(ours).bytes_moved * 3 < traffic_of(tvm).bytes_moved * 2


def test_each_residual_block_of_resnet_is_two_kernels() -> None:
    found = partition(next(regions_of(to_ir(resnet18()))))
    kernels = [" ".join(node.op_type for node in group.nodes) for group in found.groups]
    assert kernels.count("Conv Relu") == 9
    assert kernels.count("Conv Add Relu") == 8
    assert kernels.count("Conv") == 3
