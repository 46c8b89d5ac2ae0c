"""How much a model by itself makes of rounding: what its results do where values change by a unit.

Inputs, constants and what nodes of the main graph give are changed, each element by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.judge.models import Case, Generated
from benchmarks.judge.running import Array, NotRunError, Session, run

DRAWS = 4
TIMES = 4
"""An element may differ by so many times as much as it does under one-unit changes."""
NUDGED = frozenset((np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)))


def is_rounding(given: Generated, case: Case, found: Sequence[Any]) -> bool:
    """Whether results differ from those of the given model by what one unit makes of these.

    Integers have to be the same, and so has every element that shows no rounding.
    """
    if len(found) != len(case.wanted):
        return False
    drawn, others = np.random.default_rng(0), []
    try:
        for _ in range(DRAWS):
            session = Session.of(_nudged_model(given, case, drawn), given.runtime)
            others.append(session.run(_nudged_feeds(case.feeds, drawn)))
    except NotRunError:
        return False
    return all(
        _within(wanted, made, [other[place] for other in others], is_exact=case.exact[place])
        for place, (wanted, made) in enumerate(zip(case.wanted, found, strict=True))
    )


def _within(wanted: Any, made: Any, others: Sequence[Any], *, is_exact: bool) -> bool:
    if not isinstance(wanted, np.ndarray) or wanted.dtype not in NUDGED or is_exact:
        return bool(np.array_equal(wanted, made))
    made = np.asarray(made)
    if made.shape != wanted.shape or any(each.shape != wanted.shape for each in others):
        return False
    wide = wanted.astype(np.float64)
    with np.errstate(all="ignore"):
        spread = np.max([np.abs(each.astype(np.float64) - wide) for each in others], axis=0)
        away = np.abs(made.astype(np.float64) - wide)
        unit = np.spacing(np.abs(wanted)).astype(np.float64)
        return bool(np.all((away <= TIMES * (spread + unit)) | (wanted == made)))


def _nudged_feeds(feeds: Mapping[str, Any], drawn: np.random.Generator) -> dict[str, Any]:
    return {name: _nudged(data, drawn) for name, data in feeds.items()}


def _nudged_model(given: Generated, case: Case, drawn: np.random.Generator) -> onnx.ModelProto:
    nudged = onnx.ModelProto()
    nudged.CopyFrom(given.model)
    for tensor in nudged.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype in NUDGED:
            tensor.CopyFrom(numpy_helper.from_array(_nudged(array, drawn), tensor.name))
    values, nodes = _values(given, case), []
    for node in nudged.graph.node:
        nodes.append(node)
        for place, name in enumerate(node.output):
            data = values.get(name)
            if isinstance(data, np.ndarray) and data.dtype in NUDGED and data.size:
                factor = _nudged(np.ones_like(data), drawn)
                node.output[place] = f"{name} before"
                nudged.graph.initializer.append(numpy_helper.from_array(factor, f"{name} factor"))
                operands = [f"{name} before", f"{name} factor"]
                nodes.append(helper.make_node("Mul", operands, [name]))
    del nudged.graph.node[:]
    nudged.graph.node.extend(nodes)
    return nudged


def _values(given: Generated, case: Case) -> dict[str, Any]:
    """What the nodes of the main graph give."""
    shown = onnx.ModelProto()
    shown.CopyFrom(given.model)
    names = [name for node in shown.graph.node for name in node.output if name]
    del shown.graph.output[:]
    shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return dict(zip(names, run(shown, case.feeds, given.runtime), strict=True))


def _nudged(data: Any, drawn: np.random.Generator) -> Any:
    """Each float as one of its neighbours, or as it is."""
    if not isinstance(data, np.ndarray) or data.dtype not in NUDGED:
        return data
    towards: Array = drawn.choice([-np.inf, 0, np.inf], data.shape).astype(data.dtype)
    return np.where(towards == 0, data, np.nextafter(data, towards)).astype(data.dtype)
