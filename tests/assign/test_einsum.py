"""Products stated as Einsum where that is allowed, with what it hides counted as moved."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from relayout.api import Result, check_certificate, optimize
from relayout.cli import main
from relayout.optimizer.compare import compare_strategies
from relayout.targets.target import TARGETS
from tests.rewrite.rewriting import canonical, parse

ATTENTION = """g (float[2,5,3,4] q, float[2,7,3,4] k, float[2,7,3,4] v) => (float[2,5,3,4] y) {
    qt = Transpose<perm=[0,2,1,3]>(q)
    kt = Transpose<perm=[0,2,3,1]>(k)
    vt = Transpose<perm=[0,2,1,3]>(v)
    s = MatMul(qt, kt)
    p = Softmax<axis=-1>(s)
    o = MatMul(p, vt)
    y = Transpose<perm=[0,2,1,3]>(o)
}"""

ATTENTION_BY_EQUATIONS = """g (float[2,5,3,4] q, float[2,7,3,4] k, float[2,7,3,4] v)
    => (float[2,5,3,4] y) {
    s = Einsum<equation="axby,azby->abxz">(q, k)
    p = Softmax<axis=-1>(s)
    y = Einsum<equation="abxy,aybz->axbz">(p, v)
}"""

BATCHED = """g (float[2,4,5] a, float[2,5,3] b) => (float[2,3,4] y) {
    m = MatMul(a, b)
    y = Transpose<perm=[0,2,1]>(m)
}"""


def optimised(
    text: str, opset: int = 17, *, einsum: bool | None = True, minimize: str = "count"
) -> Result:
    """The result, verified in ONNX Runtime; it never moves more bytes than the model given."""
    result = optimize(parse(text, opset), minimize=minimize, einsum=einsum)
    assert result.accepted
    assert result.after.bytes_moved <= result.before.bytes_moved
    return result


def operators(result: Result) -> list[str]:
    return [node.op_type for node in result.model.graph.node]


@pytest.mark.parametrize("opset", [12, 17, 21])
def test_an_attention_without_transposes(opset: int) -> None:
    result = optimised(ATTENTION, opset)
    assert canonical(result.model) == canonical(parse(ATTENTION_BY_EQUATIONS, opset))


@pytest.mark.parametrize("minimize", ["count", "bytes"])
def test_the_transposed_product_of_a_batch(minimize: str) -> None:
    result = optimised(BATCHED, minimize=minimize)
    assert result.after.transposes == 0
    assert operators(result) == ["Einsum"]


def test_what_is_hidden_in_an_einsum_counts_as_moved() -> None:
    result = optimised(ATTENTION)
    assert result.after.bytes_moved == result.before.bytes_moved
    notices = result.record().notices
    assert any("2 products are stated as Einsum" in notice for notice in notices), notices
    assert not any("no length may be 0" in notice for notice in notices)


WITHOUT_ELEMENTS = """g (float[0,2,4] x) => (float[0,2,2] y) {
    t = Transpose<perm=[0,2,1]>(x)
    y = MatMul(x, t)
}"""

EINSUM_WITHOUT_ELEMENTS = """g (float[0,2,4] x) => (float[0,2,2] y) {
    t = Transpose<perm=[0,2,1]>(x)
    y = Einsum<equation="bij,bjk->bik">(x, t)
}"""

SUM_WITHOUT_ELEMENTS = """g (float[2,0,4] x, float[0,3,2] y) => (float[2,4,3] z) {
    a = Transpose<perm=[0,2,1]>(x)
    b = Transpose<perm=[2,0,1]>(y)
    z = MatMul(a, b)
}"""


@pytest.mark.parametrize("text", [WITHOUT_ELEMENTS, EINSUM_WITHOUT_ELEMENTS, SUM_WITHOUT_ELEMENTS])
def test_no_equation_is_changed_where_there_are_no_elements(text: str) -> None:
    """ONNX Runtime ends its process on some equations of such operands, and runs others."""
    given = parse(text)
    result = optimize(given, minimize="count", einsum=True, verify=False)
    assert canonical(result.model) == canonical(given)


def test_nothing_is_stated_as_einsum_where_that_is_forbidden() -> None:
    result = optimised(ATTENTION, einsum=False)
    assert "Einsum" not in operators(result)
    assert not any("Einsum" in notice for notice in result.record().notices)


def test_the_fewest_transposes_are_those_beside_einsum() -> None:
    """It needs no option: it is the only standard operator that states it without Transposes."""
    result = optimised(ATTENTION, einsum=None)
    assert canonical(result.model) == canonical(parse(ATTENTION_BY_EQUATIONS, 17))


def test_the_fewest_bytes_take_an_einsum_only_if_asked() -> None:
    assert "Einsum" not in operators(optimised(BATCHED, einsum=None, minimize="bytes"))


@pytest.mark.parametrize("target", [name for name in TARGETS if name != "onnx"])
def test_other_targets_take_an_einsum_only_if_asked(target: str) -> None:
    text = BATCHED.replace("[0,2,1]", "[1,0,2]").replace("[2,3,4] y", "[4,2,3] y")
    model = parse(text, 17)
    results = {
        einsum: optimize(model, target=target, minimize="count", einsum=einsum)
        for einsum in (None, False, True)
    }
    assert results[None].model == results[False].model
    assert operators(results[None]) == ["MatMul", "Transpose"]
    assert operators(results[True]) == ["Einsum"]


@pytest.mark.parametrize(
    ("options", "transposes"),
    [("", 1), ("--einsum", 0), ("--minimize count", 0), ("--minimize count --no-einsum", 1)],
)
def test_the_command_line_reports_when(
    options: str, transposes: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "given.onnx"
    onnx.save(parse(BATCHED, 17), file)
    assert main(["optimize", str(file), "--json", *options.split()]) == 0
    assert json.loads(capsys.readouterr().out)["after"]["transposes"] == transposes


LAST_TWO = {
    "a product of matrices": "float[4,5] a, float[5,3] b, float[3,4] y, 1 0",
    "a batch": "float[2,4,5] a, float[2,5,3] b, float[2,3,4] y, 0 2 1",
    "two batch axes": "float[7,2,4,5] a, float[7,2,5,3] b, float[7,2,3,4] y, 0 1 3 2",
    "one matrix for all": "float[2,4,5] a, float[5,3] b, float[2,3,4] y, 0 2 1",
    "lengths of the run": "float[N,S,5] a, float[N,5,3] b, float[N,3,S] y, 0 2 1",
}


@pytest.mark.parametrize("case", LAST_TWO)
def test_no_transpose_of_the_last_two_axes_stays_after_a_product(case: str) -> None:
    left, right, result, perm = LAST_TWO[case].split(", ")
    text = f"""g ({left}, {right}) => ({result}) {{
        m = MatMul(a, b)
        y = Transpose<perm=[{",".join(perm.split())}]>(m)
    }}"""
    assert optimised(text, einsum=None).after.transposes == 0


def test_comparing_strategies_allows_what_optimising_allows() -> None:
    model = parse(BATCHED, 17)
    left = {
        einsum: [
            strategy.left.transposes
            for strategy in compare_strategies(model, minimize="count", einsum=einsum).strategies
            if strategy.name == "exact"
        ]
        for einsum in (None, True, False)
    }
    assert left == {None: [0], True: [0], False: [1]}


def test_a_product_that_needs_no_einsum_is_none() -> None:
    """Exchanged factors, and flags of two matrices, cost no copy."""
    result = optimised(
        """g (float[4,5] a, float[5,3] b, float[2,6,7] c, float[2,7,8] d)
            => (float[3,4] y, float[2,6,8] z) {
            m = MatMul(a, b)
            y = Transpose<perm=[1,0]>(m)
            u = Transpose<perm=[1,0,2]>(c)
            v = Transpose<perm=[1,0,2]>(u)
            z = MatMul(v, d)
        }"""
    )
    assert sorted(operators(result)) == ["Gemm", "MatMul"]


def test_a_shared_transpose_moves_less_than_two_einsums() -> None:
    """The fewest bytes keep the Transpose that both products read."""
    shared = """g (float[2,5,4] a, float[2,5,4] b, float[2,7,4] k)
        => (float[2,5,7] y, float[2,5,7] z) {
        t = Transpose<perm=[0,2,1]>(k)
        y = MatMul(a, t)
        z = MatMul(b, t)
    }"""
    assert operators(optimised(shared, minimize="bytes")).count("Transpose") == 1


def test_a_transpose_that_others_read_does_not_go_into_an_einsum() -> None:
    """It would stay, and the Einsum would copy besides."""
    result = optimised(
        """g (float[2,5,4] a, float[2,7,4] k) => (float[2,5,7] y, float[2,4,7] t) {
            t = Transpose<perm=[0,2,1]>(k)
            y = Einsum<equation="bqd,bdk->bqk">(a, t)
        }""",
        einsum=False,
        minimize="bytes",
    )
    assert not result.changed


REFUSED = {
    "an opset before it": (BATCHED, 11),
    "a type without kernels": (BATCHED.replace("float[", "float16["), 17),
    "a batch that is repeated": (BATCHED.replace("[2,5,3]", "[1,5,3]"), 17),
    "a batch of unknown length": (BATCHED.replace("float[2,5,3]", "float[B,5,3]"), 17),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    text, opset = REFUSED[case]
    result = optimize(parse(text, opset), minimize="count", einsum=True, verify=False)
    assert not result.changed
    assert operators(result) == ["MatMul", "Transpose"]


def test_products_between_quantisers() -> None:
    """Where Transposes count they become Einsums, as reported; where bytes count they stay."""
    text = """g (float[2,4,5] a, float[2,5,3] b) => (float[2,3,4] y)
        <float s = {0.5}, uint8 z = {128}> {
        qa = QuantizeLinear(a, s, z)
        da = DequantizeLinear(qa, s, z)
        qb = QuantizeLinear(b, s, z)
        db = DequantizeLinear(qb, s, z)
        m = MatMul(da, db)
        t = Transpose<perm=[0,2,1]>(m)
        qt = QuantizeLinear(t, s, z)
        y = DequantizeLinear(qt, s, z)
    }"""
    result = optimised(text)
    assert "Einsum" in operators(result)
    assert result.after.transposes == 0
    assert (
        "1 product between quantisers is stated such that runtimes compute it in floats; "
        "--no-einsum keeps it in bytes"
    ) in result.record().notices
    stays = optimize(parse(text, 17), einsum=True)
    assert "Einsum" not in operators(stays)
    assert stays.after.transposes == 1


def test_symbolic_lengths() -> None:
    result = optimised(ATTENTION.replace("[2,", "[N,").replace("5,3,4]", "S,3,4]"))
    assert result.after.transposes == 0
    assert operators(result) == ["Einsum", "Softmax", "Einsum"]
    assert any("no length may be 0" in notice for notice in result.record().notices)


def test_features_over_a_constant_matrix() -> None:
    """A spectrum, stored by time, becomes bands, stored by time: no product of matrices does it."""
    model = parse(
        """g (float[N,1,5,T] x) => (float[N,1,T,3] y) <float[5,3] w> {
            t = Transpose<perm=[0,1,3,2]>(x)
            m = MatMul(t, w)
            y = Relu(m)
        }""",
        17,
    )
    weight = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    del model.graph.initializer[:]
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    result = optimize(model, minimize="count", einsum=True)
    assert result.accepted
    assert [node.op_type for node in result.model.graph.node] == ["Einsum", "Relu"]


def test_the_certificate_is_about_the_same_choice() -> None:
    model = parse(ATTENTION, 17)
    certificate = optimize(model, minimize="count").certificate()
    assert certificate["settings"]["einsum"] is True
    assert check_certificate(certificate, model) == []
    without = {**certificate, "settings": {**certificate["settings"], "einsum": False}}
    assert check_certificate(without, model) != []


def test_a_result_of_an_einsum_follows_its_readers() -> None:
    """A given equation takes the order that an operator far after it needs."""
    model = parse(
        """g (float[2,5,4] q, float[2,4,7] k) => (float[2,7,5] y) {
            s = Einsum<equation="bqd,bdk->bqk">(q, k)
            r = Sigmoid(s)
            y = Transpose<perm=[0,2,1]>(r)
        }""",
        17,
    )
    result = optimize(model, minimize="count")
    assert result.accepted
    assert result.after.transposes == 0
    assert result.after.bytes_moved == result.before.bytes_moved
    onnx.checker.check_model(result.model, full_check=True)


def reasons(text: str, opset: int, *, einsum: bool) -> str:
    record = optimised(text, opset, einsum=einsum).record()
    return " ".join(
        demand.reason
        for left in record.left
        for demand in (*left.why.stored_for.named, *left.why.wanted_by.named)
    )


def test_an_explanation_names_the_option() -> None:
    assert "--einsum" in reasons(ATTENTION, 17, einsum=False)
    assert "--einsum" not in reasons(ATTENTION, 11, einsum=False)
    assert "--einsum" not in reasons(ATTENTION, 11, einsum=True)
