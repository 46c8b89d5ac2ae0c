"""The strategies side by side on whole models, and each of them as a way to optimise."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import onnx
import pytest
from rich.console import Console

from relayout.api import optimize
from relayout.assign.strategies.registry import EXACT, STRATEGIES
from relayout.cli import main
from relayout.cli.demo_model import network
from relayout.errors import RelayoutError
from relayout.optimizer.compare import compare_strategies
from relayout.report.comparison import ComparisonRecord, StrategyRecord, comparison_text
from relayout.report.records import Figures
from tests.rewrite.rewriting import parse

TOLERANCE = 2e-5

CONVOLUTIONS = """network (float[1,2,4,4] x) => (float[1,2,4,4] y)
<float[2,2,1,1] w = {1.0, 2.0, 3.0, 4.0}> {
    a = Conv(x, w)
    b = Relu(a)
    c = Conv(b, w)
    y = Relu(c)
}"""
RESIDUAL = """residual (float[1,4,5,2] x) => (float[1,4,5,2] y)
<float[2,2,1,1] w = {1.0, 2.0, 3.0, 4.0}> {
    a = Transpose<perm = [0, 3, 1, 2]>(x)
    b = Conv(a, w)
    c = Transpose<perm = [0, 2, 3, 1]>(b)
    d = Add(c, x)
    e = Transpose<perm = [0, 3, 1, 2]>(d)
    f = Conv(e, w)
    g = Sigmoid(f)
    y = Transpose<perm = [0, 2, 3, 1]>(g)
}"""
FLATTENED = """flattened (float[1,4,5,2] x) => (float[1,40] y)
<float[2,2,1,1] w = {1.0, 2.0, 3.0, 4.0}, int64[2] shape = {1, -1}> {
    a = Transpose<perm = [0, 3, 1, 2]>(x)
    b = Conv(a, w)
    c = Relu(b)
    d = Transpose<perm = [0, 2, 3, 1]>(c)
    e = Transpose<perm = [0, 3, 1, 2]>(d)
    f = Reshape(e, shape)
    y = Softmax<axis = 1>(f)
}"""
MIXED = """mixed (float[1,2,2,2] x) => (float[1,8] y)
<float[2,2,1,1] w = {1.0, 2.0, 3.0, 4.0}, int64[2] shape = {1, -1}> {
    a = Conv(x, w)
    b = Reshape(a, shape)
    y = Softmax<axis = 1>(b)
}"""
MODELS = {"residual": parse(RESIDUAL), "flattened": parse(FLATTENED), "network": network()}


@pytest.fixture
def given(tmp_path: Path) -> Path:
    path = tmp_path / "network.onnx"
    path.write_bytes(network().SerializeToString())
    return path


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("name", [name for name in STRATEGIES if name != "naive"])
def test_every_strategy_but_the_naive_improves_a_model_without_changing_its_numbers(
    model: onnx.ModelProto, name: str
) -> None:
    result = optimize(model, strategy=name)
    assert result.changed
    assert result.verdict is not None
    assert result.verdict.equal, result.verdict.summary()
    assert result.after.better_than(result.before, result.choose.terms.objective)


def test_what_a_strategy_does_not_improve_stays_as_given() -> None:
    result = optimize(MODELS["residual"], strategy="naive")
    assert not result.changed
    assert result.model == MODELS["residual"]


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_no_strategy_costs_less_than_what_is_proved(model: onnx.ModelProto) -> None:
    record = compare_strategies(model)
    costs = {each.name: each.cost for each in record.strategies}
    assert list(costs) == list(STRATEGIES)
    assert all(each.verified for each in record.strategies), record
    assert record.bound == costs[EXACT.name] == min(costs.values())


def test_channels_last_kernels_cost_a_pair_each_or_one_for_all() -> None:
    record = compare_strategies(parse(CONVOLUTIONS), target="nhwc")
    left = {each.name: each.left.transposes for each in record.strategies}
    assert left == {name: 4 if name == "naive" else 2 for name in STRATEGIES}
    assert all(each.verified for each in record.strategies), record


def test_nothing_channels_last_goes_through_a_reshape_that_mixes_axes() -> None:
    record = compare_strategies(parse(MIXED), target="nhwc")
    assert [each.left.transposes for each in record.strategies] == [2] * len(STRATEGIES)
    assert all(each.verified for each in record.strategies), record


def test_only_the_exact_strategy_has_a_certificate() -> None:
    assert optimize(network(), verify=False).certificate()["optimal"] is True
    with pytest.raises(RelayoutError, match="only the exact strategy"):
        optimize(network(), verify=False, strategy="greedy").certificate()


def test_a_certificate_of_another_strategy_is_refused_before_anything_is_written(
    given: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, proof = given.with_name("out.onnx"), given.with_name("c.json")
    arguments = ["optimize", str(given), "-o", str(output), "--strategy", "preset"]
    assert main([*arguments, "--certificate", str(proof)]) == 2
    assert "needs the exact strategy" in capsys.readouterr().err
    assert not output.exists()


def test_optimize_by_a_strategy_of_that_name(given: Path) -> None:
    output = given.with_name("out.onnx")
    assert main(["optimize", str(given), "-o", str(output), "--strategy", "naive"]) == 0
    assert sum(node.op_type == "Transpose" for node in onnx.load(output).graph.node) == 3


def test_an_unknown_strategy_is_named_in_one_line(
    given: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["optimize", str(given), "--strategy", "best"])
    assert stopped.value.code == 2
    printed = capsys.readouterr().err
    assert f"unknown strategy 'best'; the strategies are {', '.join(STRATEGIES)}" in printed
    assert printed.count("\n") == 1


def test_compare_prints_a_row_a_strategy_and_the_bound_last(
    given: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(given)]) == 0
    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()]
    legend = ["inserted:", "regions:", "cost:", "lower"]
    assert rows[2:] == ["as", *STRATEGIES, "lower", *legend]


def test_compare_as_json_without_verifying(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(given), "--target", "ort", "--no-verify", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["target"] == "ort"
    assert record["given"]["transposes"] == 8
    last = record["strategies"][-1]
    assert (last["name"], last["left"]["transposes"], last["verified"]) == (EXACT.name, 1, False)
    assert last["cost"] == record["bound"]


def test_a_difference_is_shown_below_the_table() -> None:
    figures = Figures(1, 2, 3)
    wrong = StrategyRecord(
        "odd", 0, 1, figures, 5, 0.1, False, "different", "different: output 'y'"
    )
    console = Console(width=100, file=StringIO())
    for line in comparison_text(ComparisonRecord("m.onnx", "onnx", figures, (wrong,), 5)):
        console.print(line)
    assert isinstance(console.file, StringIO)
    assert "odd: different: output 'y'" in console.file.getvalue()
