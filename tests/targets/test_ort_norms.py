"""Written normalisations: which of them ONNX Runtime joins, and what that does to a choice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.numpy_helper import from_array

import relayout
from relayout.assign.terms import Terms
from relayout.graph.io.load import load
from relayout.graph.region import regions_of
from relayout.layout.permutation import Permutation
from relayout.optimizer.attempts import SLOWER
from relayout.targets.ort_norms import norms_of_one_kernel, parted_norm
from relayout.targets.prices.table import shipped
from tests.rewrite.rewriting import parse

CENTRED = """
  m = ReduceMean<axes = AXES>(x)
  d = Sub(x, m)"""
PLAIN = "d = Relu(x)"
LAYER = "y = Add(s, b)"
ROOT = "y = Relu(s)"

NORM = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2,16,32] x) => (float[2,16,32] y) <float two = {2}, float eps = {0.00001}> {
  CENTRE
  q = SQUARE
  v = ReduceMean<axes = AXES>(q)
  a = Add(v, eps)
  r = Sqrt(a)
  e = Div(d, r)
  s = Mul(e, w)
  LAST
}
"""


def norm(
    centre: str, last: str, axes: str, shape: tuple[int, ...], square: str = "Pow(d, two)"
) -> onnx.ModelProto:
    text = NORM.replace("CENTRE", centre).replace("LAST", last).replace("SQUARE", square)
    model = parse(text.replace("AXES", axes))
    for name in ("w", "b"):
        model.graph.initializer.append(from_array(np.ones(shape, np.float32), name))
    return model


FORMS = [
    pytest.param(norm(CENTRED, LAYER, "[-1]", (32,)), 9, id="innermost"),
    pytest.param(norm(CENTRED, LAYER, "[2]", (32,)), 9, id="counted from the front"),
    pytest.param(norm(PLAIN, ROOT, "[-1]", (32,)), 6, id="root mean square"),
    pytest.param(norm(CENTRED, LAYER, "[1]", (16, 1)), 0, id="another axis"),
    pytest.param(norm(CENTRED, LAYER, "[1, 2]", (16, 32)), 0, id="two axes"),
    pytest.param(norm(CENTRED, LAYER, "[-1]", (1, 1, 32)), 0, id="a scale of three axes"),
    pytest.param(norm(CENTRED, LAYER, "[-1]", (32,), "Mul(d, d)"), 0, id="squared by Mul"),
]


def _joined_by_runtime(model: onnx.ModelProto, saved: Path) -> bool:
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(saved)
    data = model.SerializeToString()
    onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return any("LayerNormalization" in node.op_type for node in onnx.load(saved).graph.node)


@pytest.mark.parametrize(("model", "count"), FORMS)
def test_what_the_runtime_joins(model: onnx.ModelProto, count: int, tmp_path: Path) -> None:
    found = list(norms_of_one_kernel(load(model).ir.graph))
    assert [len(nodes) for nodes in found] == ([count] if count else [])
    assert _joined_by_runtime(model, tmp_path / "saved.onnx") is bool(count)


@pytest.mark.parametrize(("axes", "shape"), [("[-1]", (32,)), ("[2]", (32,))])
@pytest.mark.parametrize(("centre", "last"), [(CENTRED, LAYER), (PLAIN, ROOT)])
def test_what_is_lost_in_another_order(
    axes: str, shape: tuple[int, ...], centre: str, last: str
) -> None:
    region = next(iter(regions_of(load(norm(centre, last, axes, shape)).ir)))
    nodes = [node for node in region.graph if node.op_type == "ReduceMean"]
    view = region.view(nodes[-1])
    assert parted_norm(view, None) is None
    assert parted_norm(view, Permutation.of(1, 0, 2)) is None
    parted = parted_norm(view, Permutation.of(0, 2, 1))
    assert parted is not None
    assert parted.kernels == (8 if centre is CENTRED else 5)
    prices = shipped("onnxruntime_x86_64")
    assert parted.nanoseconds(prices, {}) > parted.kernels * prices.node


BETWEEN = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2,32,100] x) => (float[2,32,100] y) <float two = {2}, float eps = {0.00001}> {
  t = Transpose<perm = [0, 2, 1]>(x)
  m = ReduceMean<axes = [-1]>(t)
  d = Sub(t, m)
  q = Pow(d, two)
  v = ReduceMean<axes = [-1]>(q)
  a = Add(v, eps)
  r = Sqrt(a)
  e = Div(d, r)
  s = Mul(e, w)
  n = Add(s, b)
  u = Transpose<perm = [0, 2, 1]>(n)
  y = Relu(u)
}
"""


@pytest.fixture
def between() -> onnx.ModelProto:
    """A normalisation of columns: without Transposes the runtime starts nine kernels for one."""
    model = parse(BETWEEN)
    for name in ("w", "b"):
        model.graph.initializer.append(from_array(np.ones(32, np.float32), name))
    return model


@pytest.mark.parametrize(("minimize", "left"), [("bytes", 0), ("time", 2), (None, 2)])
def test_a_normalisation_stays_one_kernel_where_time_counts(
    between: onnx.ModelProto, minimize: str | None, left: int
) -> None:
    result = relayout.optimize(between, minimize=minimize, verify=False)
    assert result.after.transposes == left


def test_what_parts_a_normalisation_is_given_up(between: onnx.ModelProto) -> None:
    result = relayout.optimize(between, verify=False)
    assert SLOWER in {attempt.verdict for attempt in result.attempts}


def test_what_parts_none_is_not_attempted_again() -> None:
    """A product of columns is slower as well, but keeps no normalisation apart."""
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,128,17] x) => (float[2,128,17] y) {
      r = Transpose<perm = [0, 2, 1]>(x)
      p = MatMul(r, w)
      s = Add(p, b)
      y = Transpose<perm = [0, 2, 1]>(s)
    }
    """
    model = parse(text)
    for name, shape in {"w": (128, 128), "b": (128,)}.items():
        model.graph.initializer.append(from_array(np.ones(shape, np.float32), name))
    result = relayout.optimize(model, verify=False)
    assert SLOWER in {attempt.verdict for attempt in result.attempts}
    assert not any("joined" in each.attempt for each in result.attempts)


def test_the_terms_are_read_back_from_a_certificate() -> None:
    terms = Terms(keeps_joined=True)
    assert Terms.of_settings(terms.settings).keeps_joined
