"""The judge of whole models: what it can make, what it finds, how it reduces that."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache, partial

import numpy as np
import onnx
import pytest

from benchmarks.judge.bodies import BODIES
from benchmarks.judge.known import known_at, place
from benchmarks.judge.leaves import LEAVES
from benchmarks.judge.models import NEWEST, OLDEST, Case, DroppedError, Generated, generated, grow
from benchmarks.judge.reducing import reduced
from benchmarks.judge.running import NEWEST_OF_ORT, ORT, REFERENCE, difference, run
from benchmarks.judge.scope import Interface, InvalidError, Scope
from benchmarks.judge.verdicts import EQUAL, HELD_BACK, VERIFIED, judged
from benchmarks.judge.views import fresh, view
from relayout.api import Result
from relayout.ops.registry import FACTS
from relayout.ops.rule import NOTHING_KNOWN

TRIES, SUCCESSES = 40, 6

WITHOUT_NUMBERS = {
    **dict.fromkeys(
        (
            "Bernoulli",
            "Dropout",
            "Multinomial",
            "RandomNormal",
            "RandomNormalLike",
            "RandomUniform",
            "RandomUniformLike",
        ),
        "gives other numbers each time",
    ),
    **dict.fromkeys(("Optional", "SequenceEmpty"), "gives no tensor"),
    "ImageDecoder": "no runtime decodes images",
    "MaxUnpool": "ONNX Runtime computes it otherwise than the standard states",
}
"""Operators of the standard domain that no model has, and why."""


@cache
def _placed() -> frozenset[tuple[str, str]]:
    """The operators that were placed, each at the newest opset that has it in a runtime."""
    found: set[tuple[str, str]] = set()
    for newest in (NEWEST, NEWEST_OF_ORT, 17):
        at = {key: opset for opset in range(OLDEST, newest + 1) for key in known_at(opset)}
        for key in sorted(set(at) - found):
            found |= _tried(at[key], partial(place, op_type=key), successes=1)
    for maker in (*LEAVES, view):
        found |= _tried(17, maker)
    for body in BODIES:
        found |= _tried(17, partial(body, grow=grow))
    return frozenset(found)


def _tried(
    opset: int, make: Callable[[Scope], None], successes: int = SUCCESSES
) -> set[tuple[str, str]]:
    """What the first successes among some tries place."""
    found: set[tuple[str, str]] = set()
    for seed in range(TRIES):
        if not successes:
            break
        scope = Scope(Interface(opset, random.Random(seed)))
        try:
            for _ in range(4):
                fresh(scope)
            make(scope)
        except InvalidError:
            continue
        found |= scope.model.placed
        successes -= 1
    return found


def test_every_operator_with_a_rule_is_made() -> None:
    with_rules = {
        op_type
        for (domain, op_type), facts in FACTS.items()
        if not domain and facts.rule is not NOTHING_KNOWN
    }
    made = {op_type for domain, op_type in _placed() if not domain}
    assert with_rules - made == set(WITHOUT_NUMBERS)


def test_models_of_every_opset_are_valid_and_alike_each_time() -> None:
    opsets = set()
    for seed in range(NEWEST - OLDEST + 1):
        try:
            first, again = generated(seed), generated(seed)
        except DroppedError:
            continue
        assert first.model == again.model
        opsets.add(first.model.opset_import[0].version)
    assert len(opsets) > 15


@pytest.mark.parametrize("seed", range(101, 106))
def test_a_model_is_right_on_every_target(seed: int) -> None:
    given = generated(seed)
    for road in ("onnx", "ort", "nhwc", VERIFIED):
        assert judged(given, road, "count").kind == EQUAL


def test_a_right_result_that_is_not_delivered_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Result, "accepted", False)
    verdict = judged(generated(101), VERIFIED, "count")
    assert verdict.kind == HELD_BACK
    assert verdict.failed


def test_one_element_in_another_place_is_found() -> None:
    wanted = [np.arange(6, dtype=np.float32).reshape(2, 3)]
    moved = [wanted[0].copy()]
    moved[0][0, 1], moved[0][1, 0] = wanted[0][1, 0], wanted[0][0, 1]
    assert difference(wanted, moved, [True]) == "output 0: at [0, 1] 1.0 became 3.0"
    assert difference(wanted, moved, [False]) is not None
    assert difference(wanted, wanted, [True]) is None


def test_a_failure_is_reduced_to_the_nodes_it_needs() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    large (float[2,3] x) => (float[2,3] y, float[3,2] z) {
      a = Relu(x)
      b = Neg(a)
      c = Abs(b)
      y = Exp(c)
      z = Transpose<perm = [1, 0]>(b)
    }""")
    feeds = {"x": np.ones((2, 3), np.float32)}
    wanted = run(model, feeds, REFERENCE)
    given = Generated(model, (Case(feeds, wanted, (False, False)),), REFERENCE, frozenset())
    small = reduced(given, lambda part: any(n.op_type == "Abs" for n in part.model.graph.node))
    assert [node.op_type for node in small.model.graph.node] == ["Abs"]
    assert run(small.model, small.cases[0].feeds, REFERENCE)


@pytest.mark.parametrize(
    ("node", "shape"),
    [
        ("GlobalMaxPool (x)", (2, 3, 4)),
        ("GlobalMaxPool (x)", (2, 3, 4, 5, 2)),
        ("LRN <size = 3, alpha = 0.5> (x)", (2, 7, 4, 5)),
        ("LpNormalization <axis = 1, p = 1> (x)", (2, 3, 4)),
        ("MaxPool <kernel_shape = [3, 2], pads = [1, 0, 1, 0]> (x)", (2, 3, 3, 3)),
        ("MaxPool <kernel_shape = [2, 3], strides = [3, 2], ceil_mode = 1> (x)", (1, 2, 7, 6)),
        ("ConvTranspose <group = 3, strides = [2], pads = [1, 1]> (x, w, b)", (2, 3, 5)),
    ],
)
def test_the_mended_reference_computes_what_onnx_runtime_does(
    node: str, shape: tuple[int, ...]
) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]> judged (float{list(shape)} x) => (float y)
        <float[3,1,3] w = {{1,2,3,4,5,6,7,8,9}}, float[3] b = {{1,2,3}}> {{ y = {node} }}"""
    )
    feeds = {"x": np.random.default_rng(0).normal(size=shape).astype(np.float32)}
    model.graph.output[0].ClearField("type")
    wanted, found = (run(model, feeds, runtime) for runtime in (ORT, REFERENCE))
    assert difference(wanted, found, [False]) is None
