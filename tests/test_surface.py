"""What `import relayout` offers, and how it looks at a prompt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import relayout
from relayout import OpFacts, RelayoutError, Strategy, Target
from relayout.assign.assignment import Assignment
from relayout.assign.problem import LayoutProblem, as_given, evaluate
from relayout.assign.strategies.registry import STRATEGIES
from relayout.cli.demo_model import network
from relayout.targets.target import TARGETS

SHORT = 200
LONGEST_AT_A_PROMPT = 500
MANY = 60


def _unchanged(problem: LayoutProblem, _seconds: float) -> Assignment:
    choice = as_given(problem)
    return Assignment(choice, evaluate(problem, choice) or 0)


MINE = Target("mine", fused_matmul=True)
UNCHANGED = Strategy("unchanged", _unchanged)


@pytest.fixture
def _only_here() -> Iterator[None]:
    """What a test registers is forgotten after it."""
    kept = [(registry, dict(registry._values)) for registry in (TARGETS, STRATEGIES)]
    yield
    for registry, values in kept:
        registry._values.clear()
        registry._values.update(values)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return network()


def long_model() -> onnx.ModelProto:
    """Transposes side by side, of which none can go, with long names, and all in one Concat."""
    names = [f"{'block/' * 10}{number}" for number in range(MANY)]
    nodes = [helper.make_node("Softmax", ["x"], [f"{n}/s"], n, axis=1) for n in names]
    nodes += [
        helper.make_node("Transpose", [f"{n}/s"], [f"{n}/t"], f"{n}/t", perm=[1, 0]) for n in names
    ]
    nodes += [helper.make_node("Softmax", [f"{n}/t"], [f"{n}/u"], f"{n}/u", axis=1) for n in names]
    nodes.append(helper.make_node("Concat", [f"{n}/u" for n in names], ["y"], "y", axis=0))
    shapes = {"x": [3, 5], "y": [5 * MANY, 3]}
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    graph = helper.make_graph(nodes, "long", ports[:1], ports[1:])
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


def test_all_that_is_offered_is_there() -> None:
    assert all(getattr(relayout, name) is not None for name in relayout.__all__)
    assert dir(relayout) == sorted([*relayout.__all__, "__version__"])
    assert relayout.__all__ == relayout.api.__all__


def test_what_a_plugin_needs_is_offered() -> None:
    values = {"Target", "Strategy", "Objective", "OpFacts"}
    functions = {"register_operator", "register_strategy", "register_target"}
    assert values | functions <= set(relayout.__all__)


def test_nothing_else_is_offered() -> None:
    with pytest.raises(AttributeError, match="'relayout' has no attribute 'optimise'"):
        relayout.optimise  # noqa: B018


@pytest.mark.usefixtures("_only_here")
def test_a_registered_target_is_found_by_its_name(model: onnx.ModelProto) -> None:
    relayout.register_target(MINE)
    result = relayout.optimize(model, target="mine", verify=False)
    assert result.record().target == "mine"
    with pytest.raises(RelayoutError, match="there is a target 'mine' already"):
        relayout.register_target(Target("mine"))


@pytest.mark.usefixtures("_only_here")
def test_a_registered_strategy_is_found_by_its_name(model: onnx.ModelProto) -> None:
    relayout.register_strategy(UNCHANGED)
    assert relayout.optimize(model, strategy="unchanged", verify=False).record().optimal is False
    with pytest.raises(RelayoutError, match="there is a strategy 'unchanged' already"):
        relayout.register_strategy(Strategy("unchanged", _unchanged))


def test_values_are_taken_without_being_registered(model: onnx.ModelProto) -> None:
    result = relayout.optimize(
        model,
        target=MINE,
        strategy=UNCHANGED,
        minimize=relayout.Objective.COUNT,
        verify=False,
    )
    assert result.record().target == "mine"
    assert "mine" not in TARGETS


def test_results_are_short_at_a_prompt(model: onnx.ModelProto) -> None:
    optimized, fused = relayout.optimize(model), relayout.fuse(model)
    assert repr(optimized).startswith("<Result 8 -> 1 Transposes; proved identical; equal")
    assert repr(fused).startswith("<FuseResult kernels: unfused ")
    assert len(repr(optimized)) < SHORT
    assert len(repr(fused)) < SHORT


def test_whatever_a_call_gives_is_short_at_a_prompt() -> None:
    model = long_model()
    optimized = relayout.optimize(model, verify=False)
    for given in (
        optimized.record(),
        relayout.inspect(model),
        relayout.count(model),
        relayout.infer_layouts(model),
        relayout.check_profile(model, "qnn"),
        relayout.compare_strategies(model, verify=False),
        relayout.fuse(model, verify=False).record(),
        relayout.explain_node(model, "y"),
    ):
        assert len(repr(given)) < LONGEST_AT_A_PROMPT


def test_a_compiled_model_is_short_at_a_prompt() -> None:
    compiled = relayout.compile(network(), backend="ort", verify=False, dims={"N": 1})
    assert repr(compiled) == "<ArrayModel image [N, 16, 16, 3] -> scores>"


def test_two_models_are_compared_in_a_line(model: onnx.ModelProto, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    found = relayout.verify_models(path, path)
    assert repr(found).startswith("<Equivalence proved identical; equal: 1 output")


def test_a_long_reason_is_shortened_at_a_prompt() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[2,3] x) => (float[2,3] y) {
            a = Transpose<perm=[1,0]>(x)
            b = Transpose<perm=[1,0]>(a)
            c = Exp(b)
            d = Neg(c)
            y = own.Unheard(d)
        }"""
    )
    for result in (relayout.optimize(model), relayout.fuse(model)):
        assert "; proved identical; unknown: " in repr(result)
        assert len(repr(result)) < SHORT
        assert len(result.record().verdict) > SHORT


@pytest.mark.parametrize("name", TARGETS)
def test_targets_are_short_at_a_prompt(name: str) -> None:
    assert len(repr(TARGETS[name])) < 2 * SHORT


@pytest.mark.parametrize("registry", [TARGETS, STRATEGIES], ids=["targets", "strategies"])
def test_each_has_a_line_about_it(registry: dict[str, Target | Strategy]) -> None:
    summaries = [registry[name].summary for name in registry]
    assert all(0 < len(summary) <= 120 and "\n" not in summary for summary in summaries)
    assert len(set(summaries)) == len(summaries)


def test_a_string_in_place_of_a_list_is_refused(model: onnx.ModelProto) -> None:
    for call in (relayout.optimize, relayout.compare_strategies):
        with pytest.raises(RelayoutError, match="keep is a list of selectors, not the string"):
            call(model, keep="op:Conv", verify=False)
    with pytest.raises(RelayoutError, match="op_types is a tuple of names, not the string 'Mine'"):
        relayout.register_operator(OpFacts("Mine"))  # type: ignore[arg-type]
