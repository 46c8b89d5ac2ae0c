"""Operators in torch: onnx's own tests, and the samples of the operator rules."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import pytest
from onnx.backend.test.runner import Runner

from relayout.errors import RelayoutError
from tests.ops import law
from tests.samples import ALL
from tests.samples.sample import Sample
from tests.suites.backend import Case, case, case_names

torch = pytest.importorskip("torch")

import relayout  # noqa: E402 - torch may be missing
from relayout.backends.torch.lower.registry import LOWERINGS  # noqa: E402

TOLERANCE = 1e-5
DRAWN = frozenset(("Bernoulli", "Dropout", "Multinomial"))
REFERENCE_ERRS = frozenset(("LpNormalization", "MaxPool", "MeanVarianceNormalization"))
"""Operators of which onnx's reference evaluator fails, or computes something else than they are."""


REFUSED = frozenset(("test_scan_sum",))
"""Tests of what was an operator's meaning long ago."""


def _operators(model: onnx.ModelProto) -> list[tuple[str, str]]:
    return [(node.domain, node.op_type) for node in model.graph.node]


def _first_cases() -> dict[str, str]:
    """For each operator with a lowering the first of onnx's tests that is about it alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = [name for kind, name in case_names() if kind == "node"]
        found: dict[str, str] = {}
        for name in names:
            operators = _operators(case("node", name).model)
            if len(operators) == 1 and operators[0] in LOWERINGS and name not in REFUSED:
                found.setdefault(operators[0][1], name)
    return {op_type: name for op_type, name in found.items() if op_type not in DRAWN}


def _run(found: Case) -> None:
    names = [value.name for value in found.model.graph.input]
    compiled = relayout.compile(found.model, tune=False, verify=False)
    for inputs, outputs in found.data:
        results = compiled(dict(zip(names, inputs, strict=False)))
        Runner.assert_similar_outputs(outputs, [*results.values()], found.rtol, found.atol)


CASES = _first_cases()


@pytest.mark.parametrize("op_type", CASES)
def test_onnx_test_of_an_operator_passes(op_type: str) -> None:
    _run(case("node", CASES[op_type]))


def _first_samples() -> list[Sample]:
    """The first sample of each operator at its oldest and its newest definition."""
    lowered = [
        sample
        for sample in ALL
        if (sample.domain, sample.op_type) in LOWERINGS
        and not any(x is not None and x.dtype.kind in "OU" for x in sample.inputs)
        and sample.op_type not in DRAWN | REFERENCE_ERRS
    ]
    found: dict[tuple[str, bool], Sample] = {}
    for is_newest in (False, True):
        for sample in sorted(lowered, key=lambda s: s.version, reverse=is_newest):
            found.setdefault((sample.op_type, is_newest), sample)
    return list({sample.id: sample for sample in found.values()}.values())


@pytest.mark.parametrize("sample", _first_samples(), ids=lambda sample: sample.id)
def test_sample_gives_the_same_numbers_in_all_strides(sample: Sample) -> None:
    model = law.model_of(sample)
    feeds = law.feeds_of(sample)
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


def test_operators_without_a_lowering_are_named_before_anything_runs() -> None:
    text = """<ir_version: 9, opset_import: ["" : 20, "other" : 1]>
    strange (string[2] x, float[2] y) => (string[2] z, float[2] u) {
      z = StringConcat(x, x)
      u = other.Thing(y)
    }"""
    with pytest.raises(RelayoutError, match=r"no lowering of StringConcat, other\.Thing"):
        relayout.compile(onnx.parser.parse_model(text), verify=False)
