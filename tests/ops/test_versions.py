"""Models brought to a newer opset give the same, by tables that cover every version."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import relayout
from relayout.errors import RelayoutError
from relayout.graph.io.load import load
from relayout.ops.versions.raising import raised
from relayout.ops.versions.table import _UNCHANGED, CHANGES, NEWEST
from tests.ops import law
from tests.samples import ALL
from tests.samples.sample import Sample

Schemas = dict[str, dict[int, onnx.defs.OpSchema]]


def schemas() -> Schemas:
    found: Schemas = defaultdict(dict)
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            found[schema.name][schema.since_version] = schema
    return found


SCHEMAS = schemas()
UNCHANGED = {(name, v) for v, names in _UNCHANGED.items() for name in names.split()}


# the tables


def test_the_tables_have_every_version_of_every_operator() -> None:
    known = {
        (name, version)
        for name, versions in SCHEMAS.items()
        for version in sorted(versions)[1:]
        if version <= NEWEST
    }
    assert known == CHANGES.keys()
    assert onnx.defs.onnx_opset_version() >= NEWEST


@pytest.mark.parametrize(("name", "version"), sorted(UNCHANGED))
def test_an_unchanged_operator_only_allows_more(name: str, version: int) -> None:
    versions = SCHEMAS[name]
    new = versions[version]
    old = versions[max(each for each in versions if each < version)]
    assert not new.deprecated
    for key, attribute in old.attributes.items():
        later = new.attributes[key]
        assert later.type == attribute.type
        if attribute.default_value.type:
            assert later.default_value == attribute.default_value
    for key in new.attributes.keys() - old.attributes.keys():
        assert not new.attributes[key].required
    assert len(new.inputs) >= len(old.inputs)
    for ours, theirs in zip(_types(old), _types(new), strict=False):
        for before, after in zip(ours, theirs, strict=False):
            assert before <= after


def _types(schema: onnx.defs.OpSchema) -> list[list[set[str]]]:
    allowed = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
    sides = (schema.inputs, schema.outputs)
    return [[allowed.get(port.type_str, {port.type_str}) for port in side] for side in sides]


# every sample of every rule

ORT_NEWEST = 22
"""What ONNX Runtime has most kernels for."""

NO_KERNEL = {("GlobalLpPool", 22)}
RANDOM = "training"


def _targets(sample: Sample) -> list[int]:
    """Every version in which something has to change, and the newest."""
    key = sample.op_type
    changed = {v for (name, v) in CHANGES if name == key and (name, v) not in UNCHANGED}
    newest = NEWEST if sample.runtime == "reference" else ORT_NEWEST
    wanted = {version for version in (*changed, newest) if sample.version < version <= newest}
    if sample.op_type == "Upsample":
        wanted -= {10}  # neither runtime has a kernel of opset 10 that reads a Constant as scales
    return sorted(wanted)


def _samples() -> Iterator[Sample]:
    """All of operators that change, two of each version of the others."""
    seen: dict[tuple[str, int], int] = defaultdict(int)
    changing = {name for name, version in CHANGES.keys() - UNCHANGED if version > 7}
    for sample in ALL:
        seen[sample.op_type, sample.version] += 1
        few = seen[sample.op_type, sample.version] <= 2
        if not sample.domain and sample.note != RANDOM and (few or sample.op_type in changing):
            yield sample


@pytest.mark.parametrize("sample", list(_samples()), ids=lambda sample: sample.id)
def test_a_sample_in_a_newer_opset_gives_the_same(sample: Sample) -> None:
    model, feeds = law.model_of(sample), law.feeds_of(sample)
    try:
        expected = law.run(model, feeds, sample.runtime)
    except Exception:  # noqa: BLE001 a runtime without this old version
        pytest.skip("no runtime has this version")
    for version in _targets(sample):
        try:
            newer = raised(load(model), version)
        except RelayoutError as error:
            assert "cannot be brought to opset" in str(error)  # noqa: PT017 for some versions only
            continue
        if (sample.op_type, version) in NO_KERNEL:
            continue
        got = law.run(newer, feeds, sample.runtime)
        for before, after in zip(expected, got, strict=True):
            law.compare(f"{sample.id} in opset {version}", before, after, 0.0)


# operators whose meaning changed, with many settings


def _model(
    op_type: str,
    version: int,
    inputs: dict[str, Any],
    constants: dict[str, Any] | None = None,
    outputs: int = 1,
    **attributes: Any,
) -> onnx.ModelProto:
    given = {**inputs, **(constants or {})}
    names = [name if value is not None else "" for name, value in given.items()]
    results = [f"y{index}" for index in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, results, name="node", **attributes)],
        "g",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in inputs.items()
            if array is not None
        ],
        [onnx.ValueInfoProto(name=name) for name in results],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _floats(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def run(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return list(ort.InferenceSession(model.SerializeToString(), options).run(None, feeds))


def assert_same(
    model: onnx.ModelProto,
    feeds: dict[str, Any],
    newest: int = ORT_NEWEST,
    tolerance: float = 0.0,
) -> None:
    """In every version up to the newest, as ONNX Runtime runs both."""
    expected = run(model, feeds)
    for version in range(model.opset_import[0].version + 1, newest + 1):
        newer = raised(load(model), version)
        assert newer.opset_import[0].version == version
        for before, after in zip(expected, run(newer, feeds), strict=True):
            law.compare(f"opset {version}", before, after, tolerance)


SHAPES = [(2, 3, 4), (3, 1, 1), (2, 3, 1, 1), (4, 5), (7,), (1, 2, 3, 2, 2)]


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("shape", SHAPES)
def test_axes_that_were_taken_together(op_type: str, shape: tuple[int, ...]) -> None:
    x = _floats(*shape)
    for version, axis in product((7, 11, 12), (None, *range(-len(shape), len(shape)))):
        if axis is not None and axis < 0 and version < 11:
            continue
        if axis is None and len(shape) < 2:
            continue
        attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
        model = _model(op_type, version, {"x": x}, **attributes)
        for newer in (13, 14, ORT_NEWEST):
            made = raised(load(model), newer)
            for before, after in zip(run(model, {"x": x}), run(made, {"x": x}), strict=True):
                law.compare(f"{axis} {newer}", before, after, 0.0)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
def test_axes_that_were_taken_together_may_be_empty(op_type: str) -> None:
    for shape in ((2, 0, 3), (0, 2, 3), (2, 3, 0)):
        x = _floats(*shape)
        model = _model(op_type, 11, {"x": x}, axis=1)
        symbolic = onnx.ModelProto()
        symbolic.CopyFrom(model)
        for index, dim in enumerate(symbolic.graph.input[0].type.tensor_type.shape.dim):
            dim.dim_param = f"d{index}"
        made = raised(load(symbolic), 14)
        assert [y.shape for y in run(made, {"x": x})] == [shape]


@pytest.mark.parametrize("version", [7, 9])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_an_upsample(version: int, mode: str) -> None:
    x, scales = _floats(1, 2, 3, 5), [1.0, 1.0, 2.0, 2.0 if mode == "linear" else 1.5]
    if version == 7:
        assert_same(_model("Upsample", 7, {"x": x}, mode=mode, scales=scales), {"x": x})
        return
    model = _model("Upsample", 9, {"x": x}, {"s": np.asarray(scales, np.float32)}, mode=mode)
    assert_same(model, {"x": x})


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("value", [None, 0.0, 2.5])
def test_a_pad(mode: str, value: float | None) -> None:
    x = _floats(2, 3, 4)
    attributes: dict[str, Any] = {} if value is None else {"value": value}
    assert_same(
        _model("Pad", 7, {"x": x}, mode=mode, pads=[0, 1, 2, 0, 1, 0], **attributes), {"x": x}
    )


@pytest.mark.parametrize("bounds", [{}, {"min": -0.5}, {"max": 0.25}, {"min": -0.5, "max": 0.25}])
def test_a_clip(bounds: dict[str, Any]) -> None:
    x = np.asarray([-np.inf, -1, -0.5, 0, 0.2, 0.3, np.inf, np.nan], np.float32)
    assert_same(_model("Clip", 7, {"x": x}, **bounds), {"x": x})


def test_a_clip_of_long_floats_keeps_the_limits_of_short_ones() -> None:
    x = np.asarray([-1e300, 1.0, 1e300])
    model = raised(load(_model("Clip", 7, {"x": x})), 13)
    largest = float(np.finfo(np.float32).max)
    np.testing.assert_allclose(run(model, {"x": x})[0], [-largest, 1, largest])


@pytest.mark.parametrize("axes", [None, [0, 2], [2], [1, 0]])
def test_a_slice(axes: list[int] | None) -> None:
    x = _floats(4, 5, 6)
    count = 2 if axes is None else len(axes)
    attributes: dict[str, Any] = {} if axes is None else {"axes": axes}
    model = _model(
        "Slice", 7, {"x": x}, starts=[1, -3][:count], ends=[1000, -1][:count], **attributes
    )
    assert_same(model, {"x": x})


def test_operators_whose_defaults_or_forms_changed() -> None:
    x = _floats(2, 6, 5, 4)
    assert_same(_model("TopK", 7, {"x": x}, outputs=2, k=3, axis=2), {"x": x})
    assert_same(_model("Dropout", 7, {"x": x}, ratio=0.3), {"x": x})
    channels = {name: np.abs(_floats(6)) for name in "smbv"}
    assert_same(_model("BatchNormalization", 7, {"x": x}, channels, momentum=0.8), {"x": x})
    both: list[dict[str, Any]] = [{}, {"split": [1, 5]}]
    for parts in both:
        assert_same(_model("Split", 7, {"x": x}, outputs=2, axis=1, **parts), {"x": x})
    updates, indices = _floats(2, 2, 5, 4), np.zeros((2, 2, 5, 4), np.int64)
    indices[:, 1] = 3
    model = _model("Scatter", 9, {"x": x}, {"i": indices, "u": updates}, axis=1)
    assert_same(model, {"x": x})
    boxes = np.asarray([[0, 0, 3, 3], [1, 1, 2.5, 2]], np.float32)
    where = {"rois": boxes, "batch": np.asarray([0, 1])}
    aligned = _model("RoiAlign", 10, {"x": x}, where, output_height=2, output_width=2)
    assert_same(aligned, {"x": x}, newest=21)  # ONNX Runtime has no kernel of opset 22
    grid = np.clip(_floats(2, 3, 3, 2), -1, 1)
    for mode in ("bilinear", "nearest", "bicubic"):
        assert_same(_model("GridSample", 16, {"x": x}, {"g": grid}, mode=mode), {"x": x})


@pytest.mark.parametrize("constant", [True, False])
def test_a_scale_for_each_group(constant: bool) -> None:
    x = _floats(2, 6, 5)
    weights = {"s": _floats(3), "b": _floats(3) + 1}
    feeds = {"x": x} if constant else {"x": x, **weights}
    model = _model("GroupNormalization", 18, feeds, weights if constant else {}, num_groups=3)
    expected = ReferenceEvaluator(model).run(None, feeds)
    for version in (21, NEWEST):
        got = ReferenceEvaluator(raised(load(model), version)).run(None, feeds)
        law.compare(str(version), next(iter(expected)), next(iter(got)), 1e-6)


@pytest.mark.parametrize("axis", [None, 1, 2])
def test_the_axis_of_a_transform(axis: int | None) -> None:
    x = _floats(1, 4, 5, 1)
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    model = _model("DFT", 17, {"x": x}, **attributes)
    expected = ReferenceEvaluator(model).run(None, {"x": x})
    got = ReferenceEvaluator(raised(load(model), NEWEST)).run(None, {"x": x})
    law.compare("DFT", next(iter(expected)), next(iter(got)), 1e-5)


def test_the_last_window_of_a_pool() -> None:
    x = _floats(1, 2, 7, 7)
    for op_type, pads in product(("AveragePool", "MaxPool"), ([0, 0, 0, 0], [1, 1, 0, 0])):
        pool: dict[str, Any] = {
            "kernel_shape": [2, 2],
            "strides": [2, 2],
            "ceil_mode": 1,
            "pads": pads,
        }
        # ONNX Runtime adds up in another order from opset 19 on.
        assert_same(_model(op_type, 11, {"x": x}, **pool), {"x": x}, tolerance=1e-6)


# old forms of broadcasting


@pytest.mark.parametrize(
    ("dims", "axis"), [((3,), 1), ((3, 4), 1), ((2,), 0), ((5,), None), ((4, 5), None)]
)
def test_an_operand_that_began_at_an_axis(dims: tuple[int, ...], axis: int | None) -> None:
    x, y = _floats(2, 3, 4, 5), _floats(*dims)
    attributes: dict[str, Any] = {"broadcast": 1} | ({} if axis is None else {"axis": axis})
    model = raised(load(_model("Add", 6, {"x": x, "y": y}, **attributes)), 7)
    begin = 4 - len(dims) if axis is None else axis
    wide = y.reshape((1,) * begin + dims + (1,) * (4 - begin - len(dims)))
    law.compare("Add", x + wide, run(model, {"x": x, "y": y})[0], 0.0)


def test_a_slope_for_each_channel() -> None:
    x, slope = _floats(2, 3, 4, 5), _floats(3)
    model = raised(load(_model("PRelu", 6, {"x": x}, {"s": slope})), 7)
    expected = np.where(x < 0, x * slope.reshape(3, 1, 1), x)
    law.compare("PRelu", expected, run(model, {"x": x})[0], 0.0)


# what is refused


def _refused(model: onnx.ModelProto, version: int) -> str:
    with pytest.raises(RelayoutError) as caught:
        raised(load(model), version)
    return str(caught.value)


def test_what_means_something_else_is_refused_with_a_reason() -> None:
    x = _floats(2, 3, 8, 8)
    small = {"s": np.asarray([1, 1, 0.5, 0.5], np.float32)}
    pool: dict[str, Any] = {
        "kernel_shape": [2, 2],
        "strides": [3, 3],
        "pads": [0, 0, 1, 1],
        "ceil_mode": 1,
    }
    weights = {"w": _floats(3, 2, 3, 3)}
    masked = _model("Dropout", 7, {"x": x}, outputs=2)
    cases = [
        (masked, 10, "mean something else"),
        (_model("Resize", 10, {"x": x}, small), 11, "smaller"),
        (_model("MaxPool", 12, {"x": _floats(1, 1, 6, 6)}, **pool), 22, "begins in the padding"),
        (_model("ConvTranspose", 9, {"x": x}, weights, output_shape=[9, 9]), 11, "odd padding"),
        (_model("BatchNormalization", 7, dict.fromkeys("xsmbv", x), spatial=0), 9, "ended"),
        (_model("Erf", 9, {"x": np.arange(3)}), 13, "integers"),
    ]
    for model, version, reason in cases:
        text = _refused(model, version)
        assert reason in text
        assert "node 'node' cannot be brought to opset" in text
        if version > model.opset_import[0].version + 1:
            raised(load(model), version - 1)


def test_a_version_that_is_older_or_unknown_is_refused() -> None:
    model = _model("Relu", 13, {"x": _floats(2)})
    assert "lowered" in _refused(model, 12)
    assert "not known" in _refused(model, NEWEST + 1)
    assert raised(load(model), 13) == model


# what is around the nodes


def _branching() -> onnx.ModelProto:
    """Nodes that change in a body, with a name that a new constant would like to have."""
    body = helper.make_graph(
        [
            helper.make_node("Unsqueeze", ["x"], ["u"], axes=[0]),
            helper.make_node("Hardmax", ["u"], ["r"], axis=1),
        ],
        "body",
        [],
        [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)],
    )
    graph = helper.make_graph(
        [
            helper.make_node("Identity", ["x"], ["u_axes"]),
            helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body),
        ],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)


def test_bodies_are_brought_along() -> None:
    model = _branching()
    for condition in (True, False):
        feeds = {"x": _floats(2, 3), "c": np.asarray(condition)}
        result = relayout.optimize(model, opset=17, verify=False)
        for before, after in zip(run(model, feeds), run(result.model, feeds), strict=True):
            law.compare("If", before, after, 0.0)


def _calling(**attributes: Any) -> onnx.ModelProto:
    squeeze = helper.make_node("Squeeze", ["a"], ["b"], **attributes)
    function = helper.make_function(
        "local", "without", ["a"], ["b"], [squeeze], [helper.make_opsetid("", 11)], ["axes"]
    )
    graph = helper.make_graph(
        [helper.make_node("without", ["x"], ["y"], domain="local", axes=[1])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 1, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 11), helper.make_opsetid("local", 1)],
        functions=[function],
        ir_version=8,
    )


def test_functions_are_brought_along() -> None:
    model, feeds = _calling(axes=[1]), {"x": _floats(2, 1, 3)}
    newer = raised(load(model), 17)
    assert newer.functions[0].opset_import[0].version == 17
    law.compare("call", run(model, feeds)[0], run(newer, feeds)[0], 0.0)


def test_an_attribute_of_the_caller_is_refused() -> None:
    model = _calling()
    attribute = model.functions[0].node[0].attribute.add(name="axes", ref_attr_name="axes")
    attribute.type = onnx.AttributeProto.INTS
    assert "given by the caller" in _refused(model, 17)


def test_the_given_message_and_what_is_not_restated_stay() -> None:
    model = _branching()
    model.graph.node[0].metadata_props.add(key="from", value="here")
    before = model.SerializeToString(deterministic=True)
    newer = raised(load(model), 13)
    assert model.SerializeToString(deterministic=True) == before
    assert newer.graph.node[0] == model.graph.node[0]
    assert newer.graph.output == model.graph.output
    body = newer.graph.node[1].attribute[0].g
    assert [node.op_type for node in body.node] == [
        *("Constant", "Unsqueeze", "Shape", "Flatten", "Hardmax", "Reshape")
    ]
    assert body.node[0].output[0] == "u_axes_1"
