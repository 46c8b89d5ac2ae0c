"""Operators in torch: onnx's own tests, and the samples of the operator rules."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import pytest
from onnx.backend.test.runner import Runner

from relayout.errors import RelayoutError
from tests.ops import law
from tests.ops.test_law_unknown import (
    with_constants_at_run_time,
    with_open_lengths,
    without_ranks,
)
from tests.samples import ALL
from tests.samples.sample import Array, Sample
from tests.suites.backend import Case, case, case_names
from tests.verify.proof import nodes

torch = pytest.importorskip("torch")

import relayout  # noqa: E402 - torch may be missing
from relayout.backends.torch.lower.registry import LOWERINGS  # noqa: E402

TOLERANCE = 1e-5
DRAWN = frozenset(("Bernoulli", "Dropout", "Multinomial"))
REFERENCE_ERRS = frozenset(("LpNormalization", "MaxPool", "MeanVarianceNormalization"))
"""Operators of which onnx's reference evaluator fails, or computes something else than they are."""


UNDECIDED = {
    "no-variance": "a difference of infinities, which depends on the strides",
    "saturate": "numpy has no such type",
    "zero point per row": "no runtime at hand runs it",
}
"""Notes of samples that show nothing, each with the reason."""
LEFT_OUT = {
    "test_dft_inverse": "what is expected has rounded zeros",
    "test_dft_inverse_opset19": "likewise",
}
"""Tests of onnx that are not passed, each with the reason."""


Form = tuple[object, ...]
"""What a lowering can look at: an operator, its settings, and which operands and results it has."""


def _form(node: onnx.NodeProto, constants: frozenset[int] = frozenset()) -> Form:
    settings = frozenset((one.name, _setting(one)) for one in node.attribute)
    operands = tuple((bool(name), place in constants) for place, name in enumerate(node.input))
    return node.domain, node.op_type, settings, operands, tuple(map(bool, node.output))


def _setting(attribute: onnx.AttributeProto) -> object:
    """The value of a text; of a number only that it is given."""
    value = onnx.helper.get_attribute_value(attribute)
    return value if isinstance(value, bytes) else None


def _lowered() -> list[Sample]:
    """The samples of operators with lowerings, the oldest versions first."""
    lowered = [
        sample
        for sample in (*ALL, *(s for s in nodes.SAMPLES if s.op_type != "MultiHeadAttention"))
        if (sample.domain, sample.op_type) in LOWERINGS
        and not any(x is not None and x.dtype.kind in "OUV" for x in sample.inputs)
        and sample.op_type not in DRAWN | REFERENCE_ERRS
        and sample.note not in UNDECIDED
    ]
    return sorted(lowered, key=lambda sample: sample.version)


def _samples() -> dict[Form, Sample]:
    """A sample of each form, at its newest version."""
    return {_form(law.bare_model_of(s).graph.node[0], s.constants): s for s in _lowered()}


def _is_fed_strings(graph: onnx.GraphProto) -> bool:
    kinds = [port.type.tensor_type.elem_type for port in graph.input]
    return onnx.TensorProto.STRING in kinds


def _cases() -> list[str]:
    """The first of onnx's tests of each form of which there is no sample."""
    found: dict[Form, str] = dict.fromkeys(_samples(), "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = [name for kind, name in case_names() if kind == "node" and name not in LEFT_OUT]
        for name in names:
            graph = case("node", name).model.graph
            node, *others = graph.node
            if (
                not others
                and not _is_fed_strings(graph)
                and (node.domain, node.op_type) in LOWERINGS
                and node.op_type not in DRAWN
            ):
                found.setdefault(_form(node), name)
    return [name for name in found.values() if name]


def _run(found: Case) -> None:
    names = [value.name for value in found.model.graph.input]
    compiled = relayout.compile(found.model, tune=False, verify=False)
    for inputs, outputs in found.data:
        results = compiled(dict(zip(names, inputs, strict=False)))
        Runner.assert_similar_outputs(outputs, [*results.values()], found.rtol, found.atol)


@pytest.mark.parametrize("name", _cases())
def test_onnx_test_of_an_operator_passes(name: str) -> None:
    _run(case("node", name))


def _old_and_new() -> list[Sample]:
    """A sample of each form, and one of each operator at its oldest definition."""
    newest = list(_samples().values())
    oldest: dict[str, Sample] = {}
    for sample in _lowered():
        oldest.setdefault(sample.op_type, sample)
    return list({sample.id: sample for sample in (*newest, *oldest.values())}.values())


def _with_fractions(feeds: dict[str, Array]) -> dict[str, Array]:
    """Samples of whole numbers would hide what is cut off; vectors may be parameters."""
    return {
        name: (x * 0.75).astype(x.dtype) if x.dtype.kind == "f" and x.ndim > 1 else x
        for name, x in feeds.items()
    }


@pytest.mark.parametrize("sample", _old_and_new(), ids=lambda sample: sample.id)
def test_sample_gives_the_same_numbers_in_all_strides(sample: Sample) -> None:
    model = law.model_of(sample)
    feeds = _with_fractions(law.feeds_of(sample))
    with np.errstate(all="ignore"):
        wanted = law.run(model, feeds, sample.runtime)
    compiled = relayout.compile(model, tune=False, verify=False)
    tensors = {name: torch.from_numpy(array.copy()) for name, array in feeds.items()}
    strided = {
        name: tensor.mT.contiguous().mT for name, tensor in tensors.items() if tensor.dim() > 1
    }
    for results in (compiled(feeds), compiled(tensors | strided)):
        for name, reference in zip(results, wanted, strict=True):
            got = np.asarray(results[name])
            law.compare(f"{sample.id} {name}", reference, got, max(TOLERANCE, sample.tolerance))


def _most_attributes() -> list[Sample]:
    """Of each operator a sample with constants and one without."""
    ranked = sorted(_samples().values(), key=lambda sample: len(sample.attributes))
    return list({(s.domain, s.op_type, bool(s.constants)): s for s in ranked}.values())


@pytest.mark.parametrize("sample", _most_attributes(), ids=lambda sample: sample.id)
def test_sample_gives_the_same_numbers_though_less_was_known(sample: Sample) -> None:
    """Open lengths and numbers that are fed or, where nothing is fed, not even ranks are known."""
    model, feeds = law.bare_model_of(sample), law.feeds_of(sample)
    with np.errstate(all="ignore"):
        wanted = law.run(law.model_of(sample), feeds, sample.runtime)
    if sample.constants:
        with_constants_at_run_time(model)
        with_open_lengths(model)
    else:
        without_ranks(model)
    fed = {f"x{i}": x for i, x in enumerate(sample.inputs) if x is not None}
    try:
        compiled = relayout.compile(model, tune=False, verify=False)
    except RelayoutError:
        return  # with so little known there is no lowering
    results = compiled({port.name: fed[port.name] for port in model.graph.input})
    for (name, got), reference in zip(results.items(), wanted, strict=True):
        tolerance = max(TOLERANCE, sample.tolerance)
        law.compare(f"{sample.id} {name}", reference, np.asarray(got), tolerance)


@pytest.mark.parametrize("limits", ["n, c", "n, ", ", c"])
def test_a_loop_ends_by_what_it_has(limits: str) -> None:
    text = """<ir_version: 9, opset_import: ["" : 21]>
    g (float[2] x, int64 n, bool c) => (float[2] y) <float most = {20.0}> {
      y = Loop(LIMITS, x) <body = b (int64 i, bool g, float[2] s) => (bool go, float[2] t)
        <float two = {2.0}> { t = Mul(s, two) sum = ReduceSum<keepdims = 0>(t)
        go = Less(sum, most) }>
    }"""
    model = onnx.parser.parse_model(text.replace("LIMITS", limits))
    feeds = {"x": np.array([1, 2], np.float32), "n": np.array(2), "c": np.array(True)}
    compiled = relayout.compile(model, tune=False, verify=False)
    factor = 4 if "n" in limits else 8  # twice, or until the sum is 24
    np.testing.assert_array_equal(compiled(feeds)["y"], feeds["x"] * factor)


def test_a_scan_of_old_runs_along_each_entry_of_its_batch() -> None:
    text = """<ir_version: 3, opset_import: ["" : 8]>
    g (float[2,3] s, float[2,4,3] a, float[2,4,3] b) => (float[2,3] t, float[2,4,3] p) {
      t, p = Scan <num_scan_inputs = 2, directions = [0, 1],
        body = g (float[3] u, float[3] c, float[3] d) => (float[3] v, float[3] q)
          { e = Mul(c, d) v = Add(u, e) q = Sub(v, c) }> (EACH, s, a, b)
    }"""
    rng = np.random.default_rng(2)
    s, a, b = (
        rng.normal(size=shape).astype(np.float32) for shape in ((2, 3), (2, 4, 3), (2, 4, 3))
    )
    model = onnx.parser.parse_model(text.replace("EACH", '""'))
    found = relayout.compile(model, tune=False, verify=False)(s, a, b)
    sums = s[:, None] + np.cumsum(a * b[:, ::-1], 1)
    np.testing.assert_allclose(found["t"], sums[:, -1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["p"], sums - a, rtol=1e-5, atol=1e-6)


def test_keys_that_are_hidden_are_as_many_as_queries() -> None:
    """ONNX Runtime shows the last query all keys, also those after it."""
    text = """<ir_version: 9, opset_import: ["" : 21, "com.microsoft" : 1]>
    g (float[2,3,8] q, float[2,KEYS,8] k, float[2,KEYS,8] v) => (float[2,3,8] y) {
      y = com.microsoft.MultiHeadAttention <num_heads = 2, unidirectional = 1> (q, k, v)
    }"""
    alike, more = (onnx.parser.parse_model(text.replace("KEYS", keys)) for keys in "35")
    feeds = {name: np.random.default_rng(3).normal(size=(2, 3, 8)) for name in "qkv"}
    feeds = {name: array.astype(np.float32) for name, array in feeds.items()}
    found = relayout.compile(alike, tune=False, verify=False)(feeds)["y"]
    law.compare("y", law.run(alike, feeds, "ort")[0], np.asarray(found), TOLERANCE)
    with pytest.raises(RelayoutError, match="hides keys"):
        relayout.compile(more, tune=False, verify=False)


def test_operators_without_a_lowering_are_named_before_anything_runs() -> None:
    text = """<ir_version: 9, opset_import: ["" : 20, "other" : 1]>
    strange (string[2] x, float[2] y) => (string[2] z, float[2] u) {
      z = StringConcat(x, x)
      u = other.Thing(y)
    }"""
    with pytest.raises(RelayoutError, match=r"no lowering of StringConcat, other\.Thing"):
        relayout.compile(onnx.parser.parse_model(text), verify=False)
