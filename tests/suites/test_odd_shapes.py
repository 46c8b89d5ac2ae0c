"""Every rule on operands without elements, on scalars, and with axes written in every way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import relayout
from relayout.ops.registry import FACTS
from tests.ops import law
from tests.samples import ALL
from tests.samples.sample import Array, Sample

NEWEST = 21
"""ONNX Runtime has a kernel of this opset for every operator below."""


def _turned(model: onnx.ModelProto, feeds: dict[str, Array]) -> tuple[onnx.ModelProto, Any]:
    """The model between Transposes that cancel, so that a rule is asked; and what to run it on."""
    turned = onnx.ModelProto()
    turned.CopyFrom(model)
    graph, before, given = turned.graph, [], dict(feeds)
    for value in graph.input:
        array = feeds[value.name]
        if array.ndim < 2:
            continue
        order = [0, array.ndim - 1, *range(1, array.ndim - 1)] if array.ndim > 2 else [1, 0]
        back = np.argsort(order).tolist()
        given[value.name] = np.ascontiguousarray(array.transpose(back))
        del value.type.tensor_type.shape.dim[:]
        for length in given[value.name].shape:
            value.type.tensor_type.shape.dim.add(dim_value=length)
        before.append(
            helper.make_node("Transpose", [value.name], [f"{value.name}_turned"], perm=order)
        )
        for node in graph.node:
            node.input[:] = [f"{n}_turned" if n == value.name else n for n in node.input]
    nodes = [*before, *graph.node]
    del graph.node[:], graph.value_info[:]
    graph.node.extend(nodes)
    return turned, given


def _run(model: onnx.ModelProto, feeds: dict[str, Array], runtime: str) -> list[Any] | None:
    try:
        return law.run(model, feeds, runtime)
    except Exception:  # noqa: BLE001 what a runtime does not run tells nothing
        return None


def assert_same(model: onnx.ModelProto, feeds: dict[str, Array], runtime: str = "ort") -> bool:
    """Whether a runtime runs the model; it gives the same then when it is optimised."""
    model, feeds = _turned(model, feeds)
    expected = _run(model, feeds, runtime)
    result = relayout.optimize(model, minimize="count", verify=False)
    assert result.after.transposes <= result.before.transposes
    if expected is None:
        return False
    got = _run(result.model, feeds, runtime)
    assert got is not None
    for before, after in zip(expected, got, strict=True):
        law.compare(result.model.graph.name, before, after, 1e-5)
    return True


# lengths of 0 and 1, and no axes at all


def _samples() -> list[Sample]:
    """One of each form of each operator, of the newest version that ONNX Runtime has."""
    found: dict[tuple[str, str, int, bool], Sample] = {}
    for sample in ALL:
        if sample.version <= NEWEST and "training" not in sample.note:
            key = (sample.domain, sample.op_type, len(sample.inputs), bool(sample.constants))
            if key not in found or sample.version >= found[key].version:
                found[key] = sample
    return list(found.values())


def _feeds(sample: Sample) -> dict[str, Array]:
    return {
        f"x{i}": x
        for i, x in enumerate(sample.inputs)
        if x is not None and i not in sample.constants
    }


def _with_shape(model: onnx.ModelProto, feeds: dict[str, Array]) -> onnx.ModelProto:
    odd = onnx.ModelProto()
    odd.CopyFrom(model)
    del odd.graph.value_info[:]
    for value in odd.graph.output:
        value.ClearField("type")
    for value in odd.graph.input:
        del value.type.tensor_type.shape.dim[:]
        for length in feeds[value.name].shape:
            value.type.tensor_type.shape.dim.add(dim_value=length)
    return odd


def _odd(feeds: dict[str, Array]) -> Iterator[dict[str, Array]]:
    """The same operands with some lengths of 0 or 1, or all of them, or as scalars."""
    for keep in (0, 1):
        for axis in range(max(array.ndim for array in feeds.values())):
            yield {
                name: array.take(range(keep), axis) if axis < array.ndim else array
                for name, array in feeds.items()
            }
        yield {
            name: array[tuple(slice(keep) for _ in array.shape)] for name, array in feeds.items()
        }
    yield {
        name: array.reshape(-1)[:1].reshape(()) if array.size else array
        for name, array in feeds.items()
    }


@pytest.mark.parametrize("sample", _samples(), ids=lambda sample: sample.id)
def test_operands_without_elements_and_without_axes(sample: Sample) -> None:
    """ONNX Runtime ends the process on some of them, so it is not asked."""
    model, feeds = law.model_of(sample), _feeds(sample)
    for odd in _odd(feeds) if feeds else ():
        if sample.op_type == "Transpose" and odd["x0"].ndim != feeds["x0"].ndim:
            continue
        if sample.runtime == "reference":
            assert_same(_with_shape(model, odd), odd, sample.runtime)
        else:
            turned, _ = _turned(_with_shape(model, odd), odd)
            relayout.optimize(turned, minimize="count", verify=False)


def test_every_rule_is_among_the_samples() -> None:
    sampled = {(sample.domain, sample.op_type) for sample in _samples()}
    newer = {("", name) for name in ("Attention", "RMSNormalization", "RotaryEmbedding")}
    known = {key for key, facts in FACTS.items() if not facts.rule.barrier}
    versions = {(s.domain, s.op_type) for s in ALL if s.version <= NEWEST}
    assert (known & versions) - newer <= sampled


# axes in every way

DIMS = (2, 1, 3, 1)


def _named(
    op_type: str, version: int, axes: list[int], operands: dict[str, Any], **attributes: Any
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A node that names axes, as its version has them; None stands for their operand."""
    x = np.random.default_rng(3).normal(size=DIMS).astype(np.float32)
    names, constants = ["x"], []
    for name, entries in operands.items():
        value = axes if entries is None else entries
        if name:
            dtype = np.float32 if name == "scales" else np.int64
            constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        names.append(name)
    if None not in operands.values():
        attributes = {**attributes, "axes": axes}
    graph = helper.make_graph(
        [helper.make_node(op_type, names, ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, DIMS)],
        [onnx.ValueInfoProto(name="y")],
        constants,
    )
    opsets = [helper.make_opsetid("", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), {"x": x}


WAYS = {
    "in order": [1, 3],
    "out of order": [3, 1],
    "from the back": [-1, 1],
    "from the back, out of order": [-1, -3],
    "named twice": [3, 1, 3],
    "named twice, in two ways": [1, -3, 3],
}
"""Ways to name the second and the last of four axes."""

REDUCTIONS = sorted(name for domain, name in FACTS if name.startswith("Reduce") and not domain)


def _cases() -> Iterator[tuple[str, int, dict[str, Any], dict[str, Any]]]:
    for version in (7, 11):
        yield "Squeeze", version, {}, {}
        yield "Unsqueeze", version, {}, {}
    for version in (13, 21):
        yield "Squeeze", version, {"axes": None}, {}
        yield "Unsqueeze", version, {"axes": None}, {}
    for name in REDUCTIONS:
        for keepdims in (0, 1):
            yield name, 11, {}, {"keepdims": keepdims}
            yield name, 18, {"axes": None}, {"keepdims": keepdims}
    yield "MeanVarianceNormalization", 13, {}, {}
    yield "Slice", 13, {"starts": [0, 0], "ends": [1, 1], "axes": None}, {}
    yield "Pad", 18, {"pads": [1, 2, 3, 0], "": 0, "axes": None}, {}
    yield "Resize", 18, {"": 0, "scales": [2, 3]}, {}
    yield "CenterCropPad", 18, {"shape": [4, 2]}, {}


CASES = list(_cases())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[3]}")
def test_axes_are_read_alike_in_every_order(case: Any, way: str) -> None:
    op_type, version, operands, attributes = case
    model, feeds = _named(op_type, version, WAYS[way], operands, **attributes)
    runs = assert_same(model, feeds)
    twice = "twice" in way and op_type in {
        *("Unsqueeze", "Slice", "Pad", "Resize", "CenterCropPad")
    }
    negative = min(WAYS[way]) < 0 and version < 11
    assert runs or twice or negative


def test_axis_of_a_norm_is_read_from_both_ends() -> None:
    for op_type, version in (("LayerNormalization", 17), ("LpNormalization", 13)):
        for axis in range(-3, 3):
            x = np.random.default_rng(3).normal(size=(2, 3, 4)).astype(np.float32)
            scale = np.ones(x.shape[axis:] if op_type == "LayerNormalization" else (), np.float32)
            names = ["x", "s"] if op_type == "LayerNormalization" else ["x"]
            graph = helper.make_graph(
                [helper.make_node(op_type, names, ["y"], axis=axis)],
                "g",
                [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)],
                [onnx.ValueInfoProto(name="y")],
                [numpy_helper.from_array(scale, "s")],
            )
            opsets = [helper.make_opsetid("", version)]
            model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
            assert assert_same(model, {"x": x})


PRODUCTS_OF_NOTHING = (
    "t = Transpose<perm = [0, 2, 1]>(b) y = MatMul(a, t)",
    "t = Transpose<perm = [0, 2, 1]>(b) r = Relu(t) y = MatMul(a, r)",
    "t = Transpose<perm = [0, 2, 1]>(b) y = com.microsoft.FusedMatMul<alpha = 0.5>(a, t)",
    """t = Transpose<perm = [0, 2, 1]>(b) u = Transpose<perm = [0, 2, 1]>(a)
    v = Transpose<perm = [0, 2, 1]>(u) y = MatMul(v, t)""",
)


@pytest.mark.parametrize("target", ["onnx", "ort", "openvino", "litert"])
@pytest.mark.parametrize("nodes", PRODUCTS_OF_NOTHING)
def test_products_that_sum_nothing_get_no_flags(nodes: str, target: str) -> None:
    """ONNX Runtime leaves the result of a FusedMatMul with flags as it finds the memory."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (float[3,6,0] a, float[3,5,0] b) => (float[3,6,5] y) {{ {nodes} }}"""
    )
    for objective in ("count", "bytes"):
        made = relayout.optimize(model, target=target, minimize=objective, verify=False).model
        products = [node for node in made.graph.node if "MatMul" in node.op_type]
        assert [node.op_type for node in products] == [model.graph.node[-1].op_type]
        assert not {one.name for one in products[0].attribute} & {"transA", "transB"}
