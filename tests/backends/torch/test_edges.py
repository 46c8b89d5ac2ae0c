"""Lowerings at the edges: no axes, no elements, one element, negative places, open lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from benchmarks.judge.running import ORT, REFERENCE, NotRunError, difference, run

torch = pytest.importorskip("torch")

import relayout  # noqa: E402 - torch may be missing
from relayout.errors import RelayoutError  # noqa: E402

OPSET = 18


def _model(
    op_type: str,
    x: Any,
    parameters: dict[str, Any],
    attributes: dict[str, Any],
    *,
    is_open: bool,
    is_fed: bool = False,
) -> onnx.ModelProto:
    """One node; `is_open`: all lengths are symbols, `is_fed`: its parameters are inputs too."""
    shape = [f"n{axis}" if is_open else length for axis, length in enumerate(x.shape)]
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    node = helper.make_node(op_type, ["x", *parameters], ["y"], **attributes)
    graph = helper.make_graph(
        [node],
        "edge",
        [helper.make_tensor_value_info("x", kind, shape)],
        [onnx.ValueInfoProto(name="y")],
    )
    for name, data in parameters.items():
        if is_fed:
            kind = helper.np_dtype_to_tensor_dtype(data.dtype)
            graph.input.append(helper.make_tensor_value_info(name, kind, data.shape))
        else:
            graph.initializer.append(numpy_helper.from_array(np.asarray(data), name))
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _wanted(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    """What ONNX Runtime gives, or else the reference evaluator."""
    try:
        return run(model, feeds, ORT)
    except NotRunError:
        return run(model, feeds, REFERENCE)


def _agrees(model: onnx.ModelProto, feeds: dict[str, Any]) -> None:
    compiled = relayout.compile(model, tune=False, verify=False)
    found = [np.asarray(y) for y in compiled(feeds).values()]
    assert difference(_wanted(model, feeds), found, [False] * len(found)) is None


def _counting(*shape: int) -> Any:
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


def _ints(*values: int) -> Any:
    return np.asarray(values, np.int64)


SCALAR, VECTOR, EMPTY, ONE = _counting(), _counting(4), _counting(0, 3), _counting(1, 1)
MATRIX = _counting(2, 3)
Edge = tuple[str, Any, dict[str, Any], dict[str, Any]]


def _picking() -> Iterator[Edge]:
    for index in (np.asarray(-1), _ints(-1, 0), _ints(), _ints(0)[None]):
        yield from (("Gather", MATRIX, {"i": index}, {"axis": axis}) for axis in (0, 1, -1))
    yield "Gather", VECTOR, {"i": np.asarray(-4)}, {}
    yield "Gather", EMPTY, {"i": _ints(-1)}, {"axis": 1}
    for start, end, step in ((-1, -9, -1), (5, 9, 1), (0, -9, 1), (-9, 9, 2), (2, 1, 1)):
        for axis in (0, -1):
            given = {"b": _ints(start), "e": _ints(end), "a": _ints(axis)}
            yield "Slice", MATRIX, given, {}
            yield "Slice", MATRIX, {**given, "s": _ints(step)}, {}
    yield "Slice", MATRIX, {"b": _ints(), "e": _ints(), "a": _ints(), "s": _ints()}, {}


def _padding() -> Iterator[Edge]:
    for mode in ("constant", "edge", "wrap"):
        for x in (VECTOR, ONE):
            yield "Pad", x, {"p": _ints(*[1] * (2 * x.ndim))}, {"mode": mode}
    for pads in ((0, 1, 0, 2), (1, 0, 0, 0), (0, 0, 0, 1), (0, 0, 0, 0)):
        yield "Pad", MATRIX, {"p": _ints(*pads)}, {}
    yield "Pad", _counting(2, 1, 3, 4), {"p": _ints(0, 0, 1, 2, 0, 0, 3, 0)}, {}
    yield "Pad", EMPTY, {"p": _ints(1, 1, 1, 1)}, {}
    yield "Pad", MATRIX, {"p": _ints(-1, 0, 0, -1)}, {}


def _reducing() -> Iterator[Edge]:
    for op_type in ("ReduceSum", "ReduceMax", "ReduceMean", "ReduceProd", "ReduceL2"):
        for x in (SCALAR, VECTOR, ONE):
            yield from ((op_type, x, {}, {"keepdims": keeps}) for keeps in (0, 1))
    for op_type in ("ReduceSum", "ReduceProd", "ReduceL1"):
        yield op_type, EMPTY, {"a": _ints(0)}, {"keepdims": 0}
        yield op_type, MATRIX, {"a": _ints(-1, 0)}, {"keepdims": 1}
        yield op_type, MATRIX, {"a": _ints()}, {"noop_with_empty_axes": 1}
    for op_type in ("ArgMax", "ArgMin"):
        yield op_type, ONE, {}, {"axis": -1, "keepdims": 0}


def _viewing() -> Iterator[Edge]:
    yield "Expand", SCALAR, {"s": _ints()}, {}
    yield from (("Expand", x, {"s": _ints(2, 1, 1)}, {}) for x in (SCALAR, ONE, EMPTY))
    yield "Flatten", SCALAR, {}, {"axis": 0}
    yield from (("Flatten", EMPTY, {}, {"axis": axis}) for axis in (0, 1, -1, 2))
    yield "Reshape", SCALAR, {"s": _ints(1, -1)}, {}
    yield "Reshape", EMPTY, {"s": _ints(0, 3, 1)}, {}
    yield "Reshape", ONE, {"s": _ints()}, {}
    yield "Squeeze", ONE, {}, {}
    yield "Unsqueeze", SCALAR, {"a": _ints(0, -1)}, {}
    yield "Tile", SCALAR, {"r": _ints()}, {}
    yield "Tile", MATRIX, {"r": _ints(0, 2)}, {}
    for axis in (0, -1):
        yield "Concat", MATRIX, {"c": _counting(2, 3)}, {"axis": axis}
        yield "Concat", EMPTY, {"c": _counting(0, 3)}, {"axis": axis}


def _pooling() -> Iterator[Edge]:
    """Volumes smaller than the kernel."""
    attributes = {"kernel_shape": [2, 2, 2], "pads": [1] * 6}
    for op_type in ("AveragePool", "MaxPool", "LpPool"):
        yield op_type, _counting(1, 2, 3, 4, 1), {}, attributes


EDGES = [*_picking(), *_padding(), *_reducing(), *_viewing(), *_pooling()]


@pytest.mark.parametrize("is_open", [False, True], ids=("fixed", "open"))
@pytest.mark.parametrize("edge", EDGES, ids=lambda e: f"{e[0]}-{list(e[1].shape)}-{e[3]}")
def test_edge_gives_the_same_numbers(edge: Any, is_open: bool) -> None:
    op_type, x, parameters, attributes = edge
    _agrees(_model(op_type, x, parameters, attributes, is_open=is_open), {"x": x})


@pytest.mark.parametrize("op_type", ["AveragePool", "MaxPool", "LpPool"])
@pytest.mark.parametrize("shape", [(3, 5, 1), (3, 1, 1, 2), (1, 2, 4, 1, 3)])
@pytest.mark.parametrize("is_open", [False, True], ids=("fixed", "open"))
def test_pool_without_room_for_a_window_gives_no_elements(
    op_type: str, shape: tuple[int, ...], is_open: bool
) -> None:
    x = _counting(*shape)
    kernel = {"kernel_shape": [2] * (x.ndim - 2)}
    _agrees(_model(op_type, x, {}, kernel, is_open=is_open), {"x": x})


@pytest.mark.parametrize("count", [1, 3, 5])
@pytest.mark.parametrize("attributes", [{}, {"axis": 0}, {"axis": -1}], ids=str)
def test_a_condition_may_be_shorter_or_longer_than_an_axis(
    count: int, attributes: dict[str, Any]
) -> None:
    x, condition = _counting(3, 3), np.arange(count) % 2 == 0
    _agrees(_model("Compress", x, {"c": condition}, attributes, is_open=True), {"x": x})


WINDOW = {"kernel_shape": [2, 1]}
ALONG: list[tuple[str, int, dict[str, Any]]] = [
    *[(name, OPSET, {}) for name in ("GlobalAveragePool", "GlobalMaxPool")],
    *[(name, OPSET, WINDOW) for name in ("AveragePool", "LpPool", "MaxPool")],
    *[
        (name, version, {"axis": axis})
        for name in ("Softmax", "LogSoftmax", "Hardmax")
        for version in (11, OPSET)
        for axis in (1, 2)
    ],
    ("LpNormalization", OPSET, {"axis": 1}),
    ("LRN", OPSET, {"size": 3}),
    ("DepthToSpace", OPSET, {"blocksize": 2}),
    ("SpaceToDepth", OPSET, {"blocksize": 2}),
    ("Flatten", OPSET, {"axis": 2}),
]


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("case", ALONG, ids=str)
def test_any_axis_may_have_no_elements(case: Any, place: int) -> None:
    """As far as ONNX Runtime itself runs it, or the reference evaluator."""
    op_type, version, attributes = case
    x = np.zeros([0 if axis == place else 4 for axis in range(4)], np.float32)
    model = _model(op_type, x, {}, attributes, is_open=False)
    model.opset_import[0].version = version
    try:
        _wanted(model, {"x": x})
    except NotRunError:
        pytest.skip("nothing runs it")
    _agrees(model, {"x": x})


@pytest.mark.parametrize("shape", [(3, 0, 4), (3, 0, 4, 2), (2, 0), (0, 2, 4), (3, 2, 0)], ids=str)
@pytest.mark.parametrize(
    ("op_type", "parameters"),
    [("BatchNormalization", 4), ("InstanceNormalization", 2), ("PRelu", 1)],
)
@pytest.mark.parametrize("is_open", [False, True])
def test_channels_may_be_none(
    op_type: str, parameters: int, shape: tuple[int, ...], is_open: bool
) -> None:
    x = np.zeros(shape, np.float32)
    form = (shape[1], *[1] * (len(shape) - 2)) if op_type == "PRelu" else (shape[1],)
    held = {f"p{place}": np.ones(form, np.float32) for place in range(parameters)}
    model = _model(op_type, x, held, {}, is_open=is_open)
    try:
        _wanted(model, {"x": x})
    except NotRunError:
        pytest.skip("nothing runs it")
    _agrees(model, {"x": x})


@pytest.mark.parametrize("shape", [(0, 2, 3), (3, 2, 0), (3, 2, 4, 0), (1, 2, 0, 5, 1)])
@pytest.mark.parametrize("side", [0, 2])
@pytest.mark.parametrize("has_bias", [False, True], ids=("plain", "bias"))
def test_convolutions_without_elements_see_their_padding(
    shape: tuple[int, ...], side: int, has_bias: bool
) -> None:
    rank = len(shape) - 2
    parameters = {"w": _counting(3, 2, *[1] * rank), "b": _counting(3)}
    attributes = {"pads": [0] * rank + [side] * rank}
    given = parameters if has_bias else {"w": parameters["w"]}
    x = np.zeros(shape, np.float32)
    _agrees(_model("Conv", x, given, attributes, is_open=False), {"x": x})


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("is_open", [False, True], ids=("fixed", "open"))
def test_padding_may_take_away_all_that_a_transposed_convolution_makes(
    size: int, is_open: bool
) -> None:
    x, weight = _counting(1, 3, size, 4), _counting(3, 2, 2, 2)
    model = _model("ConvTranspose", x, {"w": weight}, {"pads": [1, 1, 1, 1]}, is_open=is_open)
    _agrees(model, {"x": x})


def test_slopes_for_channels_that_are_open() -> None:
    x, slopes = _counting(2, 3, 4, 5) - 60, _counting(3, 1, 1)
    for is_open in (False, True):
        _agrees(_model("PRelu", x, {"s": slopes}, {}, is_open=is_open), {"x": x})


def test_split_into_parts_without_elements() -> None:
    x, sizes = np.zeros(0, np.float32), _ints(0, 0, 0)
    model = _model("Split", x, {"s": sizes}, {}, is_open=False)
    for name in ("second", "third"):
        model.graph.node[0].output.append(name)
        model.graph.output.append(onnx.ValueInfoProto(name=name))
    _agrees(model, {"x": x})


@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 2, 1), (2, 2, 3)])
def test_instances_of_no_element_or_one_are_normalised(shape: tuple[int, ...]) -> None:
    x, parameters = _counting(*shape), {"s": _counting(2) + 1, "b": _counting(2)}
    _agrees(_model("InstanceNormalization", x, parameters, {}, is_open=False), {"x": x})


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5)])
def test_mean_and_variance_are_taken_over_the_axes_that_there_are(shape: tuple[int, ...]) -> None:
    x = _counting(*shape)
    model = _model("MeanVarianceNormalization", x, {}, {}, is_open=False)
    model.opset_import[0].version = 9
    _agrees(model, {"x": x})


def test_axes_that_are_fed_twice_are_squeezed_once() -> None:
    x, axes = _counting(1, 3), _ints(0, 0)
    model = _model("Squeeze", x, {"a": axes}, {}, is_open=True, is_fed=True)
    _agrees(model, {"x": x, "a": axes})


@pytest.mark.parametrize(
    "edge", [e for e in EDGES if e[2]], ids=lambda e: f"{e[0]}-{list(e[1].shape)}-{e[3]}"
)
def test_parameters_that_are_fed_are_not_taken_for_left_out(edge: Any) -> None:
    op_type, x, parameters, attributes = edge
    model = _model(op_type, x, parameters, attributes, is_open=True, is_fed=True)
    _agrees(model, {"x": x, **parameters})


def _scales_of(coordinates: str) -> Sequence[float]:
    """Corners that are not on whole pixels are aligned by onnx's tests, not by ONNX Runtime."""
    whole = (0.6, 1.0, 2.0, 3.0, 4.0)
    return whole if coordinates == "align_corners" else (*whole, 0.5, 0.7, 1.1, 1.5, 2.3, 5.5)


@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize(
    "coordinates", ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"]
)
def test_nearest_pixels_are_those_of_onnx_runtime(coordinates: str, rounding: str) -> None:
    attributes = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    x = _counting(1, 2, 5, 10)
    for scale in _scales_of(coordinates):
        scales = {"": [], "s": np.asarray([1, 1, scale, scale], np.float32)}
        _agrees(_resize(x, scales, {**attributes, "mode": "nearest"}), {"x": x})


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize("shape", [(1, 2, 1, 3), (1, 2, 1), (1, 2, 2, 1, 3), (2, 1)])
def test_padding_may_be_as_long_as_an_axis(
    shape: tuple[int, ...], mode: str, is_open: bool
) -> None:
    x, rank = _counting(*shape), len(shape)
    for length in (1, 2):
        pads = np.zeros(2 * rank, np.int64)
        pads[[rank - 2, -1]] = length if mode == "edge" else 1
        model = _model("Pad", x, {"p": pads}, {"mode": mode}, is_open=is_open)
        model.opset_import[0].version = 19
        _agrees(model, {"x": x})


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize(
    "coordinates", ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"]
)
def test_pixels_between_others_are_those_of_onnx_runtime(coordinates: str, mode: str) -> None:
    x = _counting(1, 2, 5, 10)
    attributes = {"coordinate_transformation_mode": coordinates, "mode": mode}
    for scale in _scales_of(coordinates):
        scales = {"": [], "s": np.asarray([1, 1, scale, scale], np.float32)}
        sizes = {"": [], "_": [], "z": _ints(1, 2, int(5 * scale), int(10 * scale))}
        for parameters in (scales, sizes):
            _agrees(_resize(x, parameters, attributes), {"x": x})


def _resize(x: Any, parameters: dict[str, Any], attributes: dict[str, Any]) -> onnx.ModelProto:
    """Operands whose names are no letters are left out."""
    model = _model("Resize", x, parameters, attributes, is_open=False)
    (node,) = model.graph.node
    node.input[:] = [name if name.isalpha() else "" for name in node.input]
    kept = [tensor for tensor in model.graph.initializer if tensor.name.isalpha()]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    return model


@pytest.mark.parametrize(
    ("attributes", "dtype"),
    [
        ({"mode": "linear"}, np.uint8),
        ({"mode": "nearest", "coordinate_transformation_mode": "tf_crop_and_resize"}, np.float32),
    ],
)
def test_what_runtimes_compute_differently_is_refused(attributes: Any, dtype: Any) -> None:
    x = _counting(1, 2, 3, 4).astype(dtype)
    roi = np.asarray([0, 0, 0, 0, 1, 1, 1, 1], np.float32)
    scales = np.asarray([1, 1, 2, 2], np.float32)
    with pytest.raises(RelayoutError, match=r"torch cannot run it: Resize"):
        relayout.compile(_resize(x, {"roi": roi, "s": scales}, attributes), verify=False)


@pytest.mark.parametrize("op_type", ["Gather", "GatherElements"])
def test_indices_beyond_the_assumed_length_can_be_tuned(op_type: str) -> None:
    """Kernels are timed with a batch of 1, where such indices cannot be read."""
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    tuned (float[N,3] x) => (float[M,3] y)
      <int64[2{",3" if op_type == "GatherElements" else ""}] i =
        {{{"2, 0" if op_type == "Gather" else "2, 0, 1, 0, 1, 2"}}}> {{
      g = {op_type} <axis = 0> (x, i)
      a = Sigmoid(g)
      y = Mul(a, g)
    }}"""
    model = onnx.parser.parse_model(text)
    x = _counting(3, 3)
    (found,) = relayout.compile(model, verify=False)({"x": x}).values()
    assert difference(run(model, {"x": x}, ORT), [np.asarray(found)], [False]) is None
