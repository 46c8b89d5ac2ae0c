"""Operators on data of their own: the samples of the rules, and onnx's tests of single nodes.

They bring every operator into the models that has no maker which draws its parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import helper

from benchmarks.judge.running import Array
from benchmarks.judge.scope import InvalidError, Scope, Value
from relayout.graph.read import schema_of
from tests.samples import ALL
from tests.suites.backend import case, case_names
from tests.suites.building_blocks import SECLUDED, SMOOTH

DRAWN = frozenset(
    (
        "Bernoulli",
        "Dropout",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    )
)
"""Operators that give other numbers each time."""

ROUGH_RUNTIMES = frozenset({("", "MaxUnpool"), ("", "ImageDecoder")})
"""Operators that ONNX Runtime computes otherwise than the standard states, or nobody runs."""

ROUGH_NOTES = frozenset({"training", "no-variance"})
"""Samples that no two runtimes agree on: statistics of a batch, and a division by 0."""


@dataclass(frozen=True, slots=True)
class Known:
    """One node with data that it is valid on."""

    op_type: str
    domain: str
    version: int
    inputs: Sequence[Array | None]
    attributes: dict[str, Any]
    constants: frozenset[int]
    outputs: int
    unused: frozenset[int]
    rounds: bool


@cache
def known_at(opset: int) -> dict[tuple[str, str], list[Known]]:
    """The nodes that mean at an opset what they meant where they were stated."""
    found: dict[tuple[str, str], list[Known]] = {}
    for known in _all():
        if known.domain.startswith(("ai.onnx.preview", "ai.onnx.training")):
            continue
        if known.domain or _since(known, opset) == _since(known, known.version) > 0:
            found.setdefault((known.domain, known.op_type), []).append(known)
    return found


def _since(known: Known, opset: int) -> int:
    schema = schema_of(known.op_type, opset, known.domain)
    return 0 if schema is None or schema.deprecated else schema.since_version


@cache
def _all() -> list[Known]:
    found = [known for known in (*_samples(), *_backend_nodes()) if known.op_type not in DRAWN]
    return [known for known in found if (known.domain, known.op_type) not in ROUGH_RUNTIMES]


def _samples() -> Iterator[Known]:
    for sample in ALL:
        if sample.note not in ROUGH_NOTES and not (sample.op_type == "Split" and sample.unused):
            yield Known(
                sample.op_type,
                sample.domain,
                sample.version,
                sample.inputs,
                dict(sample.attributes),
                sample.constants,
                sample.outputs,
                sample.unused,
                sample.tolerance > 0,
            )


def _backend_nodes() -> Iterator[Known]:
    """Tests whose model is one node on tensors."""
    for kind, name in case_names():
        found = case(kind, name) if kind == "node" else None
        if found is None or len(found.model.graph.node) != 1 or found.model.graph.initializer:
            continue
        node, (inputs, outputs) = found.model.graph.node[0], found.data[0]
        if _has_body(node) or not all(_is_plain(x) for x in (*inputs, *outputs)):
            continue
        given = dict(zip((v.name for v in found.model.graph.input), inputs, strict=False))
        if any(name and name not in given for name in node.input):
            continue
        imports = {o.domain: o.version for o in found.model.opset_import}
        yield Known(
            node.op_type,
            node.domain,
            imports.get(node.domain, 1),
            [np.asarray(given[name]) if name else None for name in node.input],
            {a.name: helper.get_attribute_value(a) for a in node.attribute},
            frozenset(),
            len(node.output),
            frozenset(i for i, name in enumerate(node.output) if not name),
            rounds=True,
        )


def _has_body(node: onnx.NodeProto) -> bool:
    graphs = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
    return any(a.type in graphs or a.ref_attr_name for a in node.attribute)


def _is_plain(x: Any) -> bool:
    """A tensor of a type that runtimes can be fed with."""
    return isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "fiubOU" and x.size <= 2000


def place(scope: Scope, op_type: tuple[str, str]) -> None:
    """A node of an operator, on values at hand where they fit, else on data of its own."""
    found = known_at(scope.opset).get(op_type)
    if not found:
        raise InvalidError
    known = scope.chance.choice(found)
    operands = [_operand(scope, known, index) for index in range(len(known.inputs))]
    results = scope.add(
        known.op_type,
        operands,
        known.attributes,
        outputs=known.outputs,
        unused=known.unused,
        domain=known.domain,
        version=known.version if known.domain else 1,
        rounds=known.rounds,
    )
    first = results[0]
    if isinstance(first.data, np.ndarray) and first.rank >= 2 and scope.chance.random() < 0.5:
        scope.transposed(first, scope.order(first.rank))


def _operand(scope: Scope, known: Known, index: int) -> Value | None:
    data = known.inputs[index]
    if data is None:
        return None
    if index in known.constants or data.dtype.kind in "OU":
        return scope.constant(data)
    return _at_hand(scope, known, index, data) or _stored(scope, data)


def _at_hand(scope: Scope, known: Known, index: int, data: Array) -> Value | None:
    """For the largest operand a value that some node gave, in the order of the sample."""
    sizes = [0 if x is None else x.size for x in known.inputs]
    if known.op_type in SECLUDED or index != sizes.index(max(sizes)) or data.dtype != np.float32:
        return None
    is_smooth = known.op_type in SMOOTH
    try:
        value = scope.pick(
            lambda v: (
                v.data.dtype == data.dtype
                and (v.exact or is_smooth)
                and sorted(v.data.shape) == sorted(data.shape)
            )
        )
    except InvalidError:
        return None
    return scope.as_shape(value, data.shape)


def _stored(scope: Scope, data: Array) -> Value:
    """New data, often stored in another order than it is read in."""
    if data.ndim < 2 or scope.chance.random() < 0.3:
        return scope.fresh(data)
    order = scope.order(data.ndim)
    stored = scope.fresh(np.ascontiguousarray(data.transpose(np.argsort(order))))
    return scope.transposed(stored, order)
