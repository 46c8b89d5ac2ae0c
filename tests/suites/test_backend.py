"""Every backend test the reference evaluator passes is still passed after optimising."""

from __future__ import annotations

import onnx
import pytest

from relayout.assign.choose import ChooseLayouts
from relayout.assign.terms import Terms
from relayout.graph.invariants import Signature
from relayout.graph.io.load import load
from relayout.graph.io.save import to_proto
from relayout.ops.measure import measure
from relayout.optimizer.pipeline import Checking, layouts, learn_shapes
from relayout.targets.target import ONNX
from tests.suites.backend import Case, case, case_names, wrapped


def optimised(model: onnx.ModelProto) -> onnx.ModelProto:
    loaded = load(model)
    if loaded.frozen is not None:
        return loaded.source
    learn_shapes(loaded.ir)
    before = measure(loaded.ir)
    choose = ChooseLayouts(Terms())
    layouts(ONNX, choose).run(loaded.ir, [Checking(Signature.of(loaded.ir))])
    assert measure(loaded.ir).bytes_moved <= before.bytes_moved
    return to_proto(loaded)


def assert_same_interface(before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    assert list(before.graph.input) == list(after.graph.input)
    assert list(before.graph.output) == list(after.graph.output)


def test_what_is_right_by_chance_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Case, "run", lambda *_: None)
    assert case("node", "test_relu").passes()
    drawn = ["test_bernoulli", "test_bernoulli_double", "test_bernoulli_expanded"]
    assert not any(case("node", name).passes() for name in drawn)


def baseline(kind: str, name: str) -> Case:
    found = case(kind, name)
    if not found.passes():
        pytest.skip("the reference evaluator does not pass it")
    return found


@pytest.mark.parametrize(("kind", "name"), case_names())
def test_optimised_model_is_still_right(kind: str, name: str) -> None:
    found = baseline(kind, name)
    result = optimised(found.model)
    assert_same_interface(found.model, result)
    found.run(result)


@pytest.mark.parametrize(("kind", "name"), case_names())
def test_wrapped_model_is_still_right_and_unwrapped(kind: str, name: str) -> None:
    found = baseline(kind, name)
    model = wrapped(found)
    result = optimised(model)
    assert_same_interface(model, result)
    found.run(result)
    if load(model).frozen is None:
        # Fewer bytes may take more Transposes than given, but then without the pairs as well.
        others = (found.model, optimised(found.model))
        most = max(measure(load(other).ir).transposes for other in others)
        assert measure(load(result).ir).transposes <= most
