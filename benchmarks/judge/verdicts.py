"""What becomes of a model: by each target, with verification, and by torch."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
import onnx

import relayout
from benchmarks.judge.conditioning import is_rounding
from benchmarks.judge.models import Case, Generated
from benchmarks.judge.running import (
    NEWEST_OF_ORT,
    REFERENCE,
    NotRunError,
    Session,
    difference,
    nodes_of,
    runtimes_for,
)
from relayout.errors import RelayoutError
from relayout.targets.channels_last import OPERATORS
from relayout.targets.target import ONNX, TARGETS

EQUAL, WRONG, CRASHED, REFUSED, UNJUDGED = "equal", "wrong", "crashed", "refused", "not judged"
HELD_BACK = "right but not delivered"
AS_IT_CAME = "delivered as it came"
"""Verification settled nothing about what was made of it, so the given model took its place."""
FAILURES = frozenset({WRONG, CRASHED, HELD_BACK})
PLAIN, TUNED = "compile --plain", "compile"
COMPILED = (PLAIN, TUNED)
VERIFIED = "verified"
"""As users optimise by default, who are delivered nothing where verification settles nothing."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a model on one road, and why."""

    road: str
    kind: str
    reason: str = ""

    @property
    def failed(self) -> bool:
        return self.kind in FAILURES


def judged(given: Generated, road: str, objective: str) -> Verdict:
    """The verdict on a target, or on torch."""
    judge = {VERIFIED: _delivered, **dict.fromkeys(COMPILED, _compiled)}.get(road, _optimised)
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
    return _right(given, result, road)


def _delivered(given: Generated, _: str, objective: str) -> Verdict:
    """A right result that is not delivered is as much of a failure as a wrong one that is."""
    result = relayout.optimize(given.model, minimize=objective)
    if result.withheld:
        kind = AS_IT_CAME if result.model is given.model else WRONG
        return Verdict(VERIFIED, kind, result.withheld)
    if result.accepted:
        return _right(given, result.model, VERIFIED)
    if given.model.opset_import[0].version > NEWEST_OF_ORT:
        return Verdict(VERIFIED, UNJUDGED, "ONNX Runtime does not take files of this opset")
    unverified = _optimised(given, ONNX.name, objective)
    kind = HELD_BACK if unverified.kind == EQUAL else unverified.kind
    return Verdict(VERIFIED, kind, str(result))


def _right(given: Generated, result: onnx.ModelProto, road: str) -> Verdict:
    """Whether a result gives what the given model does, by whatever runs it."""
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
        found = [_as_array(result) for result in model(feeds).values()]
        # Torch sums in another order, but integers stay integers.
        differs = difference(case.wanted, found, case.exact)
        if differs and _is_of_the_reference(given, case, found):
            return Verdict(road, UNJUDGED, "the runtimes differ on the given model")
        if differs and is_rounding(given, case, found):
            return Verdict(road, UNJUDGED, "the given model makes as much of rounding by itself")
        if differs:
            return Verdict(road, WRONG, differs)
    return Verdict(road, EQUAL)


def _is_of_the_reference(given: Generated, case: Case, found: Sequence[Any]) -> bool:
    """Whether the reference evaluator gives what ONNX Runtime does not."""
    if REFERENCE not in runtimes_for(given.model.opset_import[0].version):
        return False
    try:
        wanted = Session.of(given.model, REFERENCE).run(case.feeds)
    except NotRunError:
        return False
    return not difference(wanted, found, case.exact)


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
    given: Generated, targets: Sequence[str], *, plain: bool, tuned: bool, verified: bool
) -> Iterator[str]:
    """The roads that a model takes: every target, torch and verification if asked for.

    Targets that differ in the order of weights alone are one road for a model without such weights,
    named after the first of them.
    """
    named = {target: TARGETS.of(target) for target in targets}
    ordered = [name for name, target in named.items() if target.weights is not None]
    op_types = {node.op_type for node in nodes_of(given.model)}
    alike = set(ordered[1:]) if WEIGHTED.isdisjoint(op_types) else set()
    yield from (target for target in targets if target not in alike)
    if plain:
        yield PLAIN
    if tuned:
        yield TUNED
    if verified:
        yield VERIFIED


WEIGHTED = {operator.op_type for operator in OPERATORS if operator.weight is not None}
