"""Well-known networks channels last: Transposes at the interface only, and back without more."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest

from relayout.api import Result, count, optimize
from tests.ops import law
from tests.targets.networks import NETWORKS, OUTPUTS

STANDARD_LAST = {
    *("Add", "Clip", "Concat", "Flatten", "Gemm", "Relu", "Reshape", "Resize", "Sigmoid"),
    *("Softmax", "Transpose"),
}
"""What may be left of standard operators: none that has a kernel."""


@pytest.mark.parametrize("batch", [2, "N"])
@pytest.mark.parametrize("name", NETWORKS)
def test_transposes_are_at_the_interface_only(name: str, batch: int | str) -> None:
    given = NETWORKS[name](batch)
    there = _converted(given, "nhwc")
    model = there.model
    onnx.checker.check_model(model, full_check=True)
    assert _places(model) == (["before", "after"] if name in OUTPUTS else ["before"])
    assert {node.op_type for node in model.graph.node if not node.domain} <= STANDARD_LAST
    _same_numbers(given, model)
    back = _converted(model, "onnx").model
    assert not back.functions
    assert count(back).transposes <= count(given).transposes
    assert _kernels_of(back) == _kernels_of(given)
    _same_numbers(given, back)


def test_the_weights_of_a_residual_network_are_transposed_at_compile_time() -> None:
    """53 convolutions, and the one Transpose left is that of the image."""
    given = NETWORKS["resnet50"](1)
    model = _converted(given, "nhwc-ohwi").model
    shapes = {weight.name: tuple(weight.dims) for weight in model.graph.initializer}
    convolutions = [node for node in model.graph.node if node.op_type.startswith("Conv2d")]
    assert len(convolutions) == 53
    assert all(len(shapes[node.input[1]]) == 4 for node in convolutions)
    assert count(model).transposes == 1


@pytest.mark.parametrize("name", NETWORKS)
def test_twice_is_once(name: str) -> None:
    once = _converted(NETWORKS[name](1), "nhwc")
    assert not optimize(once.model, target="nhwc", verify=False).changed


def _places(model: onnx.ModelProto) -> list[str]:
    """Whether each Transpose is before all kernels, after all of them or in between."""
    kernels_before: dict[str, set[int]] = {}
    found = []
    count_all = sum(node.domain == "relayout" for node in model.graph.node)
    for number, node in enumerate(model.graph.node):
        before = {each for name in node.input for each in kernels_before.get(name, ())}
        if node.op_type == "Transpose":
            found.append("before" if not before else "after" if len(before) == count_all else "in")
        own = {number} if node.domain == "relayout" else set()
        kernels_before.update((name, before | own) for name in node.output)
    return found


def _converted(model: onnx.ModelProto, target: str) -> Result:
    result = optimize(model, target=target, verify=False)
    assert result.changed
    return result


def _kernels_of(model: onnx.ModelProto) -> Counter[str]:
    """The operators of a model that have a kernel channels last."""
    kinds = (node.op_type for node in model.graph.node)
    return Counter(kind for kind in kinds if kind not in STANDARD_LAST)


def _same_numbers(before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    dims = before.graph.input[0].type.tensor_type.shape.dim
    shape = [2, *(dim.dim_value for dim in dims[1:])]
    feeds = {"x": np.random.default_rng(3).normal(0, 1, shape).astype(np.float32)}
    for runtime in ("ort", "reference"):
        pairs = zip(law.run(before, feeds, runtime), law.run(after, feeds, runtime), strict=True)
        for expected, got in pairs:
            law.compare(runtime, expected, got, 1e-5)
