"""What is known of a model that another tool made: proved, else tested, refuted or unknown."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from benchmarks.judge.running import (
    ORT,
    REFERENCE,
    NotRunError,
    Session,
    difference,
    runtimes_for,
)
from benchmarks.peers_verified.tools import INSTALLED
from relayout.verify.equivalence import verify_models
from relayout.verify.proof.proof import prove_models
from relayout.verify.proof.verdict import ModelProof

IDENTICAL, LEDGER, TESTED = "identical", "equal modulo ledger", "tested"
REFUTED, UNKNOWN, SAME = "refuted", "unknown", "as given"
INTERFACE, NOT_RUN, FAILED = "interface changed", "does not run", "the tool failed"
Data = Sequence[tuple[list[Any], list[Any]]]
DRAWING = frozenset(("Bernoulli", "Multinomial", "Dropout"))


@dataclass(frozen=True, slots=True)
class Judged:
    kind: str
    reason: str = ""


def judged(tool: str, given: onnx.ModelProto, data: Data | None) -> Judged:
    """The verdict on what a tool makes; without data numbers are those that relayout draws."""
    copy = onnx.ModelProto()
    copy.CopyFrom(given)
    try:
        made = INSTALLED[tool](copy)
    except Exception as error:  # noqa: BLE001 - tools fail in their own ways
        return Judged(FAILED, f"{type(error).__name__}: {' '.join(str(error).split())[:120]}")
    if made.graph == given.graph:
        return Judged(SAME)
    if _interface(made) != _interface(given):
        return Judged(INTERFACE, f"{_interface(given)} became {_interface(made)}"[:200])
    proof = _attempted(given, made)
    if proof.holds and not proof.conditions:
        return Judged(LEDGER if proof.ledger else IDENTICAL, proof.summary())
    why = ", ".join((*proof.not_known, *proof.conditions))[:160]
    found = _drawn(given, made) if data is None else _by_data(given, made, data)
    return Judged(found.kind, found.reason or why)


def _attempted(given: onnx.ModelProto, made: onnx.ModelProto) -> ModelProof:
    try:
        return prove_models(given, made)
    except Exception as error:  # noqa: BLE001 - numbers judge then
        return ModelProof((), not_known=(f"the proof stopped: {type(error).__name__}: {error}",))


def _interface(model: onnx.ModelProto) -> tuple[list[str], list[str]]:
    """Names that a caller uses; inputs that have a default may go."""
    held = {tensor.name for tensor in model.graph.initializer}
    inputs = [port.name for port in model.graph.input if port.name not in held]
    return inputs, [port.name for port in model.graph.output]


def _drawn(given: onnx.ModelProto, made: onnx.ModelProto) -> Judged:
    with tempfile.TemporaryDirectory() as folder:
        before, after = (Path(folder) / name for name in ("given.onnx", "made.onnx"))
        onnx.save(given, before)
        onnx.save(made, after)
        found = verify_models(before, after)
    for kind in (REFUTED, UNKNOWN, TESTED, LEDGER):
        for one in found.outputs:
            if one.finding == kind:
                return Judged(kind, one.reason[:200])
    return Judged(IDENTICAL)


def _by_data(given: onnx.ModelProto, made: onnx.ModelProto, data: Data) -> Judged:
    if any(node.op_type in DRAWING or "Random" in node.op_type for node in given.graph.node):
        return Judged(UNKNOWN, "it draws numbers")
    reason = "no runtime here runs the given model"
    opset = max((o.version for o in given.opset_import if o.domain in ("", "ai.onnx")), default=1)
    for runtime in (*runtimes_for(opset), *((ORT,) if opset > 25 else (REFERENCE,))):
        try:
            wanted = _results(given, data, runtime)
        except NotRunError:
            continue
        try:
            got = _results(made, data, runtime)
        except NotRunError as error:
            reason = f"{runtime} runs the given model but not this: {error}"
            continue
        return _compared(wanted, got, runtime)
    return Judged(NOT_RUN if "but not this" in reason else UNKNOWN, reason[:200])


def _results(model: onnx.ModelProto, data: Data, runtime: str) -> list[list[Any]]:
    session, names = Session.of(model, runtime), _interface(model)[0]
    return [session.run(dict(zip(names, inputs, strict=False))) for inputs, _ in data]


def _compared(wanted: list[list[Any]], got: list[list[Any]], runtime: str) -> Judged:
    for one, other in zip(wanted, got, strict=True):
        differs = difference(one, other, [False] * len(one))
        if differs:
            return Judged(REFUTED, f"{runtime}: {differs}"[:200])
    return Judged(TESTED)
