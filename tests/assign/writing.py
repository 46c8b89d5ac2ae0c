"""Models written in the orders that a strategy chose, and what that came to."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from relayout.assign.choose import ChooseLayouts
from relayout.assign.strategies.registry import strategy_of
from relayout.assign.terms import Terms
from relayout.graph.invariants import Signature
from relayout.graph.io.load import load
from relayout.graph.io.save import to_proto
from relayout.ops.measure import measure
from relayout.optimizer.pipeline import Checking, layouts
from relayout.targets.target import NHWC, Target
from tests.rewrite.rewriting import assert_same_numbers, parse


@dataclass(frozen=True, slots=True)
class Written:
    model: onnx.ModelProto
    transposes: int
    cost: int

    @property
    def kinds(self) -> list[str]:
        return [node.op_type for node in self.model.graph.node]


def written(given: onnx.ModelProto, strategy: str, target: Target = NHWC) -> Written:
    """A model in the orders that a strategy chose, even where that is not better."""
    loaded = load(given)
    assert loaded.frozen is None
    choose = ChooseLayouts(Terms(target=target), strategy_of(strategy), writes_worse=True)
    layouts(target, choose).run(loaded.ir, [Checking(Signature.of(loaded.ir))])
    cost = sum(decision.assignment.cost for decision in choose.decisions)
    return Written(to_proto(loaded), measure(loaded.ir).transposes, cost)


def left_by(text: str, *strategies: str, target: Target = NHWC) -> list[int]:
    """How many Transposes each strategy leaves of a model in text, whose numbers stay the same."""
    given = parse(text)
    found = []
    for strategy in strategies:
        result = written(given, strategy, target)
        onnx.checker.check_model(result.model, full_check=True)
        assert_same_numbers(given, result.model, False)
        found.append(result.transposes)
    return found
