"""Products of channels are taken before a Resize where that is less work, and stay elsewhere."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper, numpy_helper

import relayout
from relayout.graph.io.load import load
from relayout.graph.region import regions_of
from relayout.optimizer.prepare import prepare
from relayout.rewrite.before_resize import ProductBeforeResize
from relayout.rewrite.dead import remove_dead
from relayout.rewrite.worklist import rewrite_model
from relayout.targets.resized_products import PASS, enlarged_price
from relayout.targets.target import ORT
from relayout.verify.proof.proof import prove_models
from tests.rewrite.in_runtime import assert_same
from tests.rewrite.rewriting import parse, to_ir

WIDE = 2 * PASS
"""So many channels that products of them are worth the passes over results."""
LINEAR = 'Resize<mode="linear", coordinate_transformation_mode="half_pixel">(x, , scales)'
SKIP = """g (float[1,{wide},3,4] x, float[1,5,6,8] z) => (float[1,7,6,8] y)
<float[4] scales = {{1, 1, 2, 2}}> {{
  r = {resize}
  c = Concat<axis = 1>(z, r)
  y = Conv(c, w, b)
}}"""
HEADS = """g (float[2,{wide},2,2] x, float[2,{wide},4,4] z) => (float[2,7,8,8] y)
<float[4] scales = {{1, 1, 4, 4}}, int64[4] sizes = {{2, {wide}, 8, 8}}> {{
  r = Resize<mode = "cubic", cubic_coeff_a = -0.5>(x, , scales)
  s = Resize<mode = "nearest">(z, , , sizes)
  c = Concat<axis = -3>(r, s)
  y = Conv(c, w, b)
}}"""
ALONE = """g (float[1,{wide},3,4] x) => (float[1,7,9,8] y) <float[4] scales = {{1, 1, 3, 2}}> {{
  r = {resize}
  y = Conv(r, w, b)
}}"""
COMPUTED = """g (float[N,{wide},3,4] x, float[N,5,6,8] z) => (float[N,7,6,8] y)
<int64[2] tail = {{6, 8}}, int64[1] none = {{0}}, int64[1] two = {{2}}> {{
  shape = Shape(x)
  head = Slice(shape, none, two)
  sizes = Concat<axis = 0>(head, tail)
  r = Resize<mode = "linear">(x, , , sizes)
  c = Concat<axis = 1>(z, r)
  y = Conv(c, w, b)
}}"""
SHARED = """g (float[1,{wide},3,4] x, float[1,5,6,8] z) => (float[1,7,6,8] y, float[1,7,6,8] v)
<float[4] scales = {{1, 1, 2, 2}}> {{
  r = {resize}
  c = Concat<axis = 1>(z, r)
  y = Conv(c, w, b)
  v = Conv(c, w)
}}"""
LAST = """g (float[1,3,4,{wide}] x, float[1,6,8,5] z) => (float[1,6,8,7] y)
<float[4] scales = {{1, 2, 2, 1}}, int64[4] sizes = {{1, 6, 8, {wide}}}> {{
  r = Resize<mode = "linear">(x, , {told})
  c = Concat<axis = -1>(r, z)
  y = MatMul(c, m)
}}"""
OLD = """g (float[1,{wide},3,4] x, float[1,5,6,8] z) => (float[1,7,6,8] y)
<float[4] scales = {{1, 1, 2, 2}}> {{
  r = Upsample<mode = "nearest">(x, scales)
  c = Concat<axis = 1>(z, r)
  y = Conv(c, w, b)
}}"""


def model_of(
    text: str, *, resize: str = LINEAR, wide: int = WIDE, opset: int = 18
) -> onnx.ModelProto:
    model = parse(text.format(resize=resize, wide=wide), opset)
    axis = 3 if "MatMul" in text else 1
    shapes = [value.type.tensor_type.shape.dim for value in model.graph.input]
    reads = [shape[axis].dim_value for shape in shapes if shape]
    reads = reads[:1] if "axis = 2" in text else reads
    drawn = np.random.default_rng(0)
    if axis == 3:
        matrix = drawn.standard_normal((sum(reads), 7)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(matrix, "m"))
        return model
    arrays = {"w": drawn.standard_normal((7, sum(reads), 1, 1)), "b": drawn.standard_normal(7)}
    model.graph.initializer.extend(
        numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()
    )
    return model


def moved(given: onnx.ModelProto) -> onnx.ModelProto:
    made = to_ir(given)
    rewrite_model(made, [ProductBeforeResize()])
    remove_dead(made)
    result = ir.to_proto(made)
    onnx.checker.check_model(result, full_check=True)
    return result


def operators(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


MOVED = {
    "beside what was not enlarged": (model_of(SKIP), {"Conv": 2, "Resize": 1, "Add": 1}),
    "of parts alone": (model_of(HEADS), {"Conv": 2, "Resize": 2, "Add": 1}),
    "of one image": (model_of(ALONE), {"Conv": 1, "Resize": 1}),
    "to sizes that are computed": (
        model_of(COMPUTED),
        {"Conv": 2, "Resize": 1, "Add": 1, "Where": 1, "Shape": 1, "Slice": 1, "Concat": 1},
    ),
    "by scales of some axes": (
        model_of(
            SKIP.replace("{{1, 1, 2, 2}}", "{{2, 2}}").replace("float[4]", "float[2]"),
            resize='Resize<axes = [-1, 2], mode = "linear">(x, , scales)',
        ),
        {"Conv": 2, "Resize": 1, "Add": 1},
    ),
    "for two convolutions": (model_of(SHARED), {"Conv": 4, "Resize": 2, "Add": 2}),
    "of matrices, by scales": (
        model_of(LAST.replace("{told}", "scales")),
        {"MatMul": 2, "Resize": 1, "Add": 1},
    ),
    "of matrices, to sizes": (
        model_of(LAST.replace("{told}", ", sizes")),
        {"MatMul": 2, "Resize": 1, "Add": 1},
    ),
    "by Upsample": (model_of(OLD, opset=9), {"Conv": 2, "Upsample": 1, "Add": 1}),
    "by the first Resize": (
        model_of(OLD.replace("Upsample", "Resize"), opset=10),
        {"Conv": 2, "Resize": 1, "Add": 1},
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_fewer_pixels_are_multiplied(name: str) -> None:
    given, wanted = MOVED[name]
    result = moved(given)
    assert operators(result) == wanted
    assert_same(given, result, rtol=1e-4, atol=1e-4)
    assert prove_models(given, result).proved


@pytest.mark.parametrize("name", MOVED)
def test_what_is_saved_has_a_price(name: str) -> None:
    given = MOVED[name][0]
    prices = [_price(model) for model in (given, moved(given))]
    assert prices[0] > 0
    assert prices[1] == 0


def _price(model: onnx.ModelProto) -> int:
    assert ORT.prices is not None
    return sum(
        enlarged_price(region.view(node), ORT.prices, {})
        for region in regions_of(to_ir(model))
        for node in region.graph
    )


def test_the_target_of_a_runtime_moves_them() -> None:
    loaded = load(model_of(SKIP))
    prepared = prepare(loaded, ORT, {})
    assert prepared.simplified.ir.graph.node(0).op_type == "Conv"


STRIDED = ("Conv(c, w, b)", "Conv<strides = [1, 1], pads = [1, 0, 0, 0]>(c, w, b)")
CROPPED = 'coordinate_transformation_mode="tf_crop_and_resize"'
KEPT = {
    "few channels": model_of(SKIP, wide=PASS),
    "smaller images": model_of(SKIP.replace("1, 1, 2, 2", "1, 1, 0.5, 0.5").replace("6,8", "1,2")),
    "a border": model_of(SKIP.replace(*STRIDED).replace("7,6,8", "7,7,8")),
    "pixels from outside": model_of(
        SKIP.replace("> {{", ", float[8] roi = {{0, 0, 0, 0, 1, 1, 1, 1}}> {{"),
        resize=f'Resize<mode="linear", {CROPPED}>(x, roi, scales)',
    ),
    "another consumer of the Resize": model_of(
        SKIP.replace("y)", f"y, float[1,{WIDE},6,8] q)", 1).replace("  c =", "  q = Relu(r)\n  c =")
    ),
    "another consumer of the Concat": model_of(
        SKIP.replace("y)", f"y, float[1,{WIDE + 5},6,8] q)", 1).replace(
            "  y =", "  q = Relu(c)\n  y ="
        )
    ),
    "an output": model_of(SKIP.replace("y)", f"y, float[1,{WIDE},6,8] r)", 1)),
    "another axis": model_of(
        SKIP.replace("axis = 1", "axis = 2").replace("1,5,6", "1,{wide},2").replace("7,6", "7,8"),
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_others_stay(name: str) -> None:
    given = KEPT[name]
    assert operators(moved(given)) == operators(given)


def test_half_floats_and_groups_stay() -> None:
    given = model_of(ALONE)
    node = next(node for node in given.graph.node if node.op_type == "Conv")
    half = onnx.ModelProto()
    half.CopyFrom(given)
    for tensor in half.graph.initializer:
        if tensor.name in "wb":
            array = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    for value in (*half.graph.input, *half.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    assert operators(moved(half)) == operators(half)
    node.attribute.append(helper.make_attribute("group", WIDE))
    weight = given.graph.initializer[-2]
    weight.CopyFrom(numpy_helper.from_array(np.ones((WIDE, 1, 1, 1), np.float32), weight.name))
    given.graph.initializer[-1].CopyFrom(numpy_helper.from_array(np.ones(WIDE, np.float32), "b"))
    given.graph.output[0].type.tensor_type.shape.dim[1].dim_value = WIDE
    assert moved(given).graph.node[0].op_type == "Resize"


LOOPED = """g (float[1,{wide},3,4] x) => (float[1,7,6,8] y)
<float[4] scales = {{1, 1, 2, 2}}, int64 rounds = {{3}}, bool go = {{1}}, float[1,7,6,8] none> {{
  r = {resize}
  y = Loop(rounds, go, none) <body = rounds (int64 i, bool c, float[1,7,6,8] v)
    => (bool d, float[1,7,6,8] s) {{
    d = Identity(c)
    p = Conv(r, w, b)
    s = Add(v, p)
  }}>
}}"""


def test_an_image_that_is_enlarged_once_is_not_enlarged_in_each_round() -> None:
    given = model_of(LOOPED.replace(", float[1,7,6,8] none", ""))
    given.graph.initializer.append(
        numpy_helper.from_array(np.zeros((1, 7, 6, 8), np.float32), "none")
    )
    result = moved(given)
    assert operators(result) == {"Resize": 1, "Loop": 1}


def test_an_image_in_a_branch() -> None:
    given = model_of(
        """g (float[1,{wide},3,4] x, bool test) => (float[1,7,6,8] y)
        <float[4] scales = {{1, 1, 2, 2}}> {{
          y = If(test) <then_branch = yes () => (float[1,7,6,8] p) {{
            r = {resize}
            p = Conv(r, w, b)
          }}, else_branch = no () => (float[1,7,6,8] q) {{
            s = {resize}
            q = Conv(s, w)
          }}>
        }}"""
    )
    result = relayout.optimize(given, target="ort")
    bodies = [body.g for body in result.model.graph.node[0].attribute]
    assert [[node.op_type for node in body.node] for body in bodies] == [["Conv", "Resize"]] * 2
    assert result.accepted
