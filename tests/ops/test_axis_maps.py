"""The law of axis maps: a node on split axes gives the given result with its axes split."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir
import pytest

from relayout.graph.editing.editor import Editor
from relayout.graph.names import Names
from relayout.graph.region import regions_of
from relayout.layout.blocks import Size
from relayout.layout.splitting import AxisMap, Groups, split_sizes
from relayout.layout.transport import Refusal, Transport
from relayout.ops.registry import axis_map, full_name, names_of
from tests.ops import law
from tests.samples import ALL
from tests.samples.sample import Array, Sample

REPEAT = 6
"""Every axis of a sample is made so many times longer, so that it has factors."""


def _lengthened(sample: Sample, found: AxisMap) -> Sample:
    """The sample with every axis that may be split as long as the factors."""
    free = {label for labels in found.operands if labels for label in labels} - found.whole
    inputs = [
        x if x is None or labels is None else _repeated(x, labels, free)
        for x, labels in zip(sample.inputs, found.operands, strict=True)
    ]
    if sample.op_type == "Expand":
        inputs[1] = _followed(sample, inputs[0])
    return Sample(
        sample.op_type,
        sample.version,
        inputs,
        sample.attributes,
        sample.constants,
        sample.outputs,
        sample.domain,
        unused=sample.unused,
        runtime=sample.runtime,
        tolerance=max(sample.tolerance, 1e-6),
    )


def _followed(sample: Sample, longer: Array | None) -> Array:
    """The target shape of an Expand whose operand became longer."""
    given, target = sample.inputs
    assert given is not None
    assert target is not None
    assert longer is not None
    lengths = zip(target.tolist(), given.shape, longer.shape, strict=True)
    return np.asarray([new if entry == old else entry for entry, old, new in lengths], np.int64)


def _repeated(x: Array, labels: tuple[int, ...], free: set[int]) -> Array:
    repeats = [
        REPEAT if label in free and length > 1 else 1
        for label, length in zip(labels, x.shape, strict=True)
    ]
    return np.tile(x, repeats)


def _splittings(sample: Sample, found: AxisMap) -> Iterator[Groups]:
    """Each label alone, and all of them at once."""
    lengths: dict[int, int] = {}
    for x, labels in zip(sample.inputs, found.operands, strict=True):
        if x is None or labels is None:
            continue
        for label, length in zip(labels, x.shape, strict=True):
            lengths[label] = max(lengths.get(label, 1), length)
    groups = {
        label: (Size(REPEAT), Size(length // REPEAT))
        for label, length in lengths.items()
        if label not in found.whole and length >= 2 * REPEAT
    }
    yield from ({label: sizes} for label, sizes in groups.items())
    if len(groups) > 1:
        yield groups


def _split(x: Array, labels: tuple[int, ...] | None, groups: Groups) -> Array:
    if labels is None:
        return x
    sizes = split_sizes(tuple(map(Size, x.shape)), labels, groups)
    return x.reshape([size.number for size in sizes])


def _hold(sample: Sample, found: AxisMap, groups: Groups) -> None:
    model = ir.from_proto(law.model_of(sample))
    region = next(regions_of(model))
    node = next(node for node in region.graph if node.name == "node")
    editor = Editor(region, Names.of(model))
    for index, (value, labels) in enumerate(zip(node.inputs, found.operands, strict=True)):
        x = sample.inputs[index]
        if value is None or x is None or labels is None:
            continue
        split = _split(x, labels, groups)
        if value.is_initializer():
            editor.read(node, index, editor.constant(split, hint="split", before=node))
        else:
            value.shape = ir.Shape(split.shape)
    unmoved = ((None,) * len(node.inputs), (None,) * len(node.outputs))
    results = editor.restated(node, Transport(*unmoved, found.changes(groups)), node.inputs)
    for place, output in enumerate(region.graph.outputs):
        region.graph.outputs[place] = results[list(node.outputs).index(output)]
    region.graph.remove(node, safe=True)
    for output in region.graph.outputs:
        output.shape = None
    feeds = {
        f"x{i}": _split(x, labels, groups)
        for i, (x, labels) in enumerate(zip(sample.inputs, found.operands, strict=True))
        if x is not None and i not in sample.constants
    }
    given = {
        f"x{i}": x
        for i, x in enumerate(sample.inputs)
        if x is not None and i not in sample.constants
    }
    before = law.run(law.model_of(sample), given, sample.runtime)
    after = law.run(ir.to_proto(model), feeds, sample.runtime)
    kept = [labels for j, labels in enumerate(found.results) if j not in sample.unused]
    for expected, got, labels in zip(before, after, kept, strict=True):
        law.compare(
            f"{sample.id} {groups}", _split(np.asarray(expected), labels, groups), got, 1e-6
        )


MAPPED_OPERATORS = set(names_of(lambda facts: facts.axes is not None))
MAPPED = [s for s in ALL if full_name(s.domain, s.op_type) in MAPPED_OPERATORS]


@pytest.mark.parametrize("sample", MAPPED, ids=lambda sample: sample.id)
def test_a_node_on_split_axes_gives_the_result_with_split_axes(sample: Sample) -> None:
    found = axis_map(law.view_of(sample))
    if isinstance(found, Refusal):
        return
    longer = _lengthened(sample, found)
    again = axis_map(law.view_of(longer))
    assert isinstance(again, AxisMap)
    for groups in _splittings(longer, again):
        _hold(longer, again, groups)


def test_every_operator_with_a_map_is_split_in_some_sample() -> None:
    split = set()
    for sample in MAPPED:
        found = axis_map(law.view_of(sample))
        if not isinstance(found, Refusal):
            longer = _lengthened(sample, found)
            name = full_name(sample.domain, sample.op_type)
            split |= {name for _ in _splittings(longer, found)}
    assert split >= MAPPED_OPERATORS - {"RegexFullMatch", "StringConcat"}
