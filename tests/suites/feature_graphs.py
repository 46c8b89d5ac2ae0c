"""Random graphs of images that are merged into features, which constant weights sum.

With each graph comes the least number of Transposes, found by trying every order of the axes of
every image, every order of what is merged, and every order of the rows of the weights.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, permutations
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx
from onnx import helper, numpy_helper

Axes: TypeAlias = tuple[int, ...]
"""For an image, which axis is stored where, the batch first; for features, which entry is where."""

BATCH = 3
COLUMNS = 4
COUNT = 8


class Made(NamedTuple):
    """A value: an image, seen through a Transpose of a stored one, or features."""

    name: str
    lengths: Axes
    tensor: int
    view: Axes | None
    """For an image, the axes of the stored one in the order of the value; None for features."""


class Operation(NamedTuple):
    """What reads some values and makes one, and so ties their orders."""

    kind: str
    reads: tuple[Made, ...]
    makes: Made | None


@dataclass(slots=True)
class FeatureGraph:
    seed: int
    images: list[Made] = field(default_factory=list)
    features: list[Made] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    tensors: int = 0

    @property
    def model(self) -> onnx.ModelProto:
        outputs = [onnx.ValueInfoProto(name=name) for name in self.outputs]
        graph = helper.make_graph(self.nodes, "g", self.inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", 21)]
        return onnx.shape_inference.infer_shapes(
            helper.make_model(graph, opset_imports=opsets, ir_version=10)
        )

    def new(self, lengths: Axes, *, is_image: bool) -> Made:
        self.tensors += 1
        view = tuple(range(len(lengths))) if is_image else None
        made = Made(f"v{self.tensors}", lengths, self.tensors, view)
        (self.images if is_image else self.features).append(made)
        return made

    def node(self, op_type: str, operands: list[str], result: str, **attributes: Any) -> None:
        self.nodes.append(helper.make_node(op_type, operands, [result], **attributes))

    def constant(self, rng: random.Random, *lengths: int) -> str:
        name = f"c{len(self.constants)}"
        values = np.random.default_rng(rng.randrange(1 << 30)).integers(1, 9, lengths)
        self.constants.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name


def feature_graph(seed: int) -> FeatureGraph:
    rng = random.Random(seed)
    graph = FeatureGraph(seed)
    lengths = [2, 3] if rng.random() < 0.5 else [2, 3, 2]
    for index in range(rng.randint(1, 2)):
        rng.shuffle(lengths)
        made = graph.new(tuple(lengths), is_image=True)
        shape = [BATCH, *made.lengths]
        declared = helper.make_tensor_value_info(made.name, onnx.TensorProto.FLOAT, shape)
        graph.inputs.append(declared)
        graph.operations.append(Operation("given", (), made))
        if index == 0 or rng.random() < 0.7:
            _transpose(graph, rng)
    for _ in range(COUNT):
        rng.choice(STEPS)(graph, rng)
    _merge(graph, rng)
    _product(graph, rng, graph.features[-1])
    _finish(graph, rng)
    return graph


def _transpose(graph: FeatureGraph, rng: random.Random) -> None:
    source = rng.choice(graph.images)
    order = list(range(len(source.lengths)))
    rng.shuffle(order)
    name = f"t{len(graph.nodes)}"
    graph.node("Transpose", [source.name], name, perm=[0, *(axis + 1 for axis in order)])
    assert source.view is not None
    view = tuple(source.view[axis] for axis in order)
    lengths = tuple(source.lengths[axis] for axis in order)
    graph.images.append(Made(name, lengths, source.tensor, view))


def _alike(graph: FeatureGraph, rng: random.Random) -> None:
    source = rng.choice(graph.images)
    made = graph.new(source.lengths, is_image=True)
    graph.node(rng.choice(("Relu", "Neg", "Abs")), [source.name], made.name)
    graph.operations.append(Operation("alike", (source,), made))


def _add(graph: FeatureGraph, rng: random.Random) -> None:
    one = rng.choice(graph.images)
    other = rng.choice([each for each in graph.images if each.lengths == one.lengths])
    made = graph.new(one.lengths, is_image=True)
    graph.node("Add", [one.name, other.name], made.name)
    graph.operations.append(Operation("alike", (one, other), made))


def _merge(graph: FeatureGraph, rng: random.Random) -> None:
    source = rng.choice(graph.images)
    made = graph.new((int(np.prod(source.lengths)),), is_image=False)
    graph.node("Flatten", [source.name], made.name)
    graph.operations.append(Operation("merge", (source,), made))


def _treat(graph: FeatureGraph, rng: random.Random) -> None:
    """Features are treated alike, or each by an entry of a constant."""
    if not graph.features:
        return
    source = rng.choice(graph.features)
    made = graph.new(source.lengths, is_image=False)
    kind = rng.choice(("Relu", "Softmax", "Mul", "BatchNormalization", "LayerNormalization"))
    counts = {"Mul": 1, "BatchNormalization": 4, "LayerNormalization": 2}
    constants = [graph.constant(rng, *source.lengths) for _ in range(counts.get(kind, 0))]
    graph.node(kind, [source.name, *constants], made.name)
    graph.operations.append(Operation("alike", (source,), made))


def _combine(graph: FeatureGraph, rng: random.Random) -> None:
    if not graph.features:
        return
    one = rng.choice(graph.features)
    other = rng.choice([each for each in graph.features if each.lengths == one.lengths])
    made = graph.new(one.lengths, is_image=False)
    graph.node(rng.choice(("Add", "Mul")), [one.name, other.name], made.name)
    graph.operations.append(Operation("alike", (one, other), made))


def _join(graph: FeatureGraph, rng: random.Random) -> None:
    if len(graph.features) < 2:
        return
    one, other = rng.choice(graph.features), rng.choice(graph.features)
    made = graph.new((one.lengths[0] + other.lengths[0],), is_image=False)
    graph.node("Concat", [one.name, other.name], made.name, axis=1)
    graph.operations.append(Operation("join", (one, other), made))


def _sum(graph: FeatureGraph, rng: random.Random) -> None:
    if graph.features:
        _product(graph, rng, rng.choice(graph.features))


def _product(graph: FeatureGraph, rng: random.Random, source: Made) -> None:
    result = f"p{len(graph.nodes)}"
    is_transposed = rng.random() < 0.5
    shape = (COLUMNS, *source.lengths) if is_transposed else (*source.lengths, COLUMNS)
    weight = graph.constant(rng, *shape)
    op_type, flags = ("Gemm", {"transB": 1}) if is_transposed else ("MatMul", {})
    graph.node(op_type, [source.name, weight], result, **flags)
    graph.operations.append(Operation("sum", (source,), None))
    graph.outputs.append(result)


def _finish(graph: FeatureGraph, rng: random.Random) -> None:
    """Some values are outputs; what nothing reads is dead, and so gets a reader."""
    read = {name for node in graph.nodes for name in node.input}
    given = {value.name for value in graph.inputs}
    for made in (*graph.images, *graph.features):
        is_unread = made.name not in read
        if is_unread and made.view is None and rng.random() < 0.8:
            _product(graph, rng, made)
        elif made.name not in given and (is_unread or rng.random() < 0.05):
            graph.outputs.append(made.name)
            graph.operations.append(Operation("shown", (made,), None))


STEPS = (_transpose, _alike, _add, _merge, _merge, _treat, _treat, _combine, _join, _sum)

# the least number of Transposes


def fewest_transposes(graph: FeatureGraph, *, copies_features: bool = False) -> int:
    """By trying everything; no rule of the package has a say.

    Features that are merged can be split, transposed and merged again, where that gives the order
    that is wanted. `copies_features`: as if one Transpose always did, which is a lower limit.
    """
    return _Search(graph, copies_features=copies_features).least


class _Search:
    def __init__(self, graph: FeatureGraph, *, copies_features: bool) -> None:
        self.operations = graph.operations
        self.copies_features = copies_features
        self.least = len(graph.nodes)
        self._try(0, {}, frozenset())

    def _try(
        self, index: int, stored: dict[int, Axes], copies: frozenset[tuple[int, Axes]]
    ) -> None:
        if len(copies) >= self.least:
            return
        if index == len(self.operations):
            self.least = len(copies)
            return
        operation = self.operations[index]
        for wanted, made in self._ways(operation, stored):
            more = {
                (read.tensor, order)
                for read, order in zip(operation.reads, wanted, strict=True)
                if stored[read.tensor] != order
            }
            now = stored if operation.makes is None else {**stored, operation.makes.tensor: made}
            self._try(index + 1, now, copies | more)

    def _ways(
        self, operation: Operation, stored: dict[int, Axes]
    ) -> Iterator[tuple[list[Axes], Axes]]:
        """The orders, of the stored tensors, that an operation reads, and the one that it makes."""
        if operation.reads and operation.reads[0].view is None:
            known = [stored[read.tensor] for read in operation.reads]
            own = _ways_of_features(operation.kind, known)
            if not self.copies_features or operation.kind not in {"alike", "shown"}:
                return own
            orders = dict.fromkeys((*known, tuple(range(len(known[0])))))
            copied = (_ways_of_features(operation.kind, [order] * len(known)) for order in orders)
            return chain(own, *copied)
        return _ways_of_images(operation)


def _ways_of_features(kind: str, features: list[Axes]) -> Iterator[tuple[list[Axes], Axes]]:
    first = features[0]
    if kind == "sum":
        yield features, ()
    elif kind == "join":
        yield features, (*first, *(len(first) + place for place in features[1]))
    elif kind == "shown" and first == tuple(range(len(first))):
        yield features, ()
    elif kind == "alike" and len(set(features)) == 1:
        yield features, first


def _ways_of_images(operation: Operation) -> Iterator[tuple[list[Axes], Axes]]:
    reads, makes = operation.reads, operation.makes
    if makes is not None and not reads:
        yield [], tuple(range(len(makes.lengths)))
        return
    lengths = reads[0].lengths
    if operation.kind == "shown":
        yield [_through(reads[0].view, tuple(range(len(lengths))))], ()
        return
    for order in permutations(range(len(lengths))):
        made = _merged(lengths, order) if operation.kind == "merge" else order
        yield [_through(read.view, order) for read in reads], made


def _through(view: Axes | None, order: Axes) -> Axes:
    """The order of a stored image that a value, seen through a view, is wanted in."""
    return order if view is None else tuple(view[axis] for axis in order)


def _merged(lengths: Axes, order: Axes) -> Axes:
    places = np.arange(int(np.prod(lengths))).reshape(lengths).transpose(order)
    return tuple(places.ravel().tolist())
