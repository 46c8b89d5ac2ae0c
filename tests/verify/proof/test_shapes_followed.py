"""The lengths that the prover follows are those that a node gives, known or open."""

from __future__ import annotations

from math import floor
from pathlib import Path

import onnx
import pytest

from relayout.verify.proof.graphs import LocalValues, ModelReader, input_value, versions_of
from relayout.verify.proof.lengths import Length
from relayout.verify.proof.stored import DataFolder
from relayout.verify.proof.table import TermTable, TermValue
from tests.ops import law
from tests.samples.sample import Sample
from tests.verify.proof import nodes
from tests.verify.proof.test_samples import SAMPLES, results

NOT_TOLD = ("#", "slice(", "windows(")
"""What stands in lengths that only a run tells."""


def _values(model: onnx.ModelProto) -> list[TermValue]:
    table = TermTable()
    given = {port.name: input_value(table, port, port.name) for port in model.graph.input}
    reader = ModelReader(table, {}, DataFolder.at(Path()))
    return LocalValues(reader, versions_of(model.opset_import)).run(model.graph, given)


def _opened(model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, int]]:
    """The model with open lengths, and what these are."""
    lengths = {}
    for port in model.graph.input:
        for axis, dim in enumerate(port.type.tensor_type.shape.dim):
            lengths[f"{port.name}_{axis}"] = dim.dim_value
            dim.dim_param = f"{port.name}_{axis}"
    return model, lengths


def _agrees(length: Length, true: int, lengths: dict[str, int]) -> bool:
    text = str(length)
    if any(name in text for name in NOT_TOLD):
        return True
    known = {"floor": floor, "min": min, "max": max, "broadcast": max, **lengths}
    return bool(eval(text, known) == true)


@pytest.mark.parametrize("sample", [*SAMPLES, *nodes.SAMPLES], ids=lambda sample: sample.id)
def test_lengths_are_those_of_the_results(sample: Sample) -> None:
    model = law.bare_model_of(sample)
    found = results(model, law.feeds_of(sample), sample.runtime)
    if found is None:
        return  # a sample that only rules refuse
    shapes = [result.shape for result in found]
    for given, lengths in ((model, {}), _opened(law.bare_model_of(sample))):
        for value, shape in zip(_values(given), shapes, strict=True):
            if value.dims is not None:
                assert value.rank == len(shape)
                pairs = zip(value.shape, shape, strict=True)
                assert all(_agrees(*pair, lengths) for pair in pairs), (value.shape, shape)
