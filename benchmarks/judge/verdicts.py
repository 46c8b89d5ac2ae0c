"""What becomes of a model: by each target, and by torch."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
import onnx

import relayout
from benchmarks.judge.models import Case, Generated
from benchmarks.judge.running import REFERENCE, NotRunError, Session, difference, runtimes_for
from relayout.errors import RelayoutError
from relayout.targets.channels_last import OPERATORS
from relayout.targets.target import TARGETS

EQUAL, WRONG, CRASHED, REFUSED, UNJUDGED = "equal", "wrong", "crashed", "refused", "not judged"
PLAIN, TUNED = "compile --plain", "compile"
COMPILED = (PLAIN, TUNED)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a model on one road, and why."""

    road: str
    kind: str
    reason: str = ""

    @property
    def failed(self) -> bool:
        return self.kind in {WRONG, CRASHED}


def judged(given: Generated, road: str, objective: str) -> Verdict:
    """The verdict on a target, or on torch."""
    judge = _compiled if road in COMPILED else _optimised
    try:
        return judge(given, road, objective)
    except RelayoutError as error:
        return Verdict(road, REFUSED, _text(error))
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is what is looked for
        return Verdict(road, CRASHED, f"{_text(error)} {_place(error)}")


def _optimised(given: Generated, road: str, objective: str) -> Verdict:
    result = relayout.optimize(given.model, target=road, minimize=objective, verify=False).model
    try:
        onnx.checker.check_model(result, full_check=True)
    except Exception as error:  # noqa: BLE001 - the checker raises several kinds
        return Verdict(road, WRONG, f"the result is not valid: {_text(error)}")
    try:
        return _compared(given.cases, Session.of(result, given.runtime), road)
    except NotRunError:
        return _second_opinion(given, result, road)


def _compared(cases: Sequence[Case], session: Session, road: str) -> Verdict:
    for case in cases:
        differs = difference(case.wanted, session.run(case.feeds), case.exact)
        if differs:
            return Verdict(road, WRONG, differs)
    return Verdict(road, EQUAL)


def _second_opinion(given: Generated, result: onnx.ModelProto, road: str) -> Verdict:
    """By the reference evaluator: ONNX Runtime lacks some operators in some orders."""
    if REFERENCE not in runtimes_for(given.model.opset_import[0].version):
        return Verdict(road, UNJUDGED, "ONNX Runtime does not run the result")
    try:
        before, after = (Session.of(model, REFERENCE) for model in (given.model, result))
        for case in given.cases:
            wanted = before.run(case.feeds)
            if difference(case.wanted, wanted, [False] * len(wanted)):
                return Verdict(road, UNJUDGED, "the runtimes differ on the given model")
            differs = difference(wanted, after.run(case.feeds), case.exact)
            if differs:
                return Verdict(road, WRONG, f"{REFERENCE}: {differs}")
    except NotRunError as error:
        return Verdict(road, UNJUDGED, str(error))
    return Verdict(road, EQUAL)


def _compiled(given: Generated, road: str, _: str) -> Verdict:
    model = relayout.compile(given.model, tune=road == TUNED, verify=False)
    for case in given.cases:
        feeds = {name: np.asarray(data) for name, data in case.feeds.items()}
        found = list(model(feeds).values())
        # Torch sums in another order, but integers stay integers.
        differs = difference(case.wanted, [_as_array(y) for y in found], case.exact)
        if differs:
            return Verdict(road, WRONG, differs)
    return Verdict(road, EQUAL)


def _as_array(result: Any) -> Any:
    is_several = isinstance(result, list | tuple)
    return [_as_array(item) for item in result] if is_several else np.asarray(result)


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"


def _place(error: Exception) -> str:
    """The line of relayout's that raised."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "relayout" in f.filename]
    return f"@{PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""


def roads_of(
    given: Generated, targets: Sequence[str], *, plain: bool, tuned: bool
) -> Iterator[str]:
    """The roads that a model takes: every target, and torch if asked for.

    Targets that differ in the order of weights alone are one road for a model without such weights,
    named after the first of them.
    """
    named = {target: TARGETS.of(target) for target in targets}
    ordered = [name for name, target in named.items() if target.weights is not None]
    alike = set(ordered[1:]) if WEIGHTED.isdisjoint(_op_types(given.model)) else set()
    yield from (target for target in targets if target not in alike)
    if plain:
        yield PLAIN
    if tuned:
        yield TUNED


WEIGHTED = {operator.op_type for operator in OPERATORS if operator.weight is not None}


def _op_types(model: onnx.ModelProto) -> set[str]:
    """Of all nodes, those of bodies and functions among them."""
    nodes = [*model.graph.node, *(node for made in model.functions for node in made.node)]
    found = set()
    while nodes:
        node = nodes.pop()
        found.add(node.op_type)
        nodes.extend(inner for attribute in node.attribute for inner in attribute.g.node)
    return found
