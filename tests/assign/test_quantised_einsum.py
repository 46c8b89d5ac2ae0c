"""Products between quantisers are stated as Einsum where Transposes count, and only there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

from relayout.api import check_certificate, optimize
from relayout.optimizer.optimize import ROUGH
from tests.assign.quantised_networks import (
    ATTENTION,
    HEADER,
    in_bytes,
    kinds,
    optimised,
    quantised,
    refusing,
    statements,
)


@pytest.mark.parametrize("per_channel", [False, True], ids=["per tensor", "per channel"])
def test_where_transposes_count_products_between_quantisers_become_einsums(
    per_channel: bool, tmp_path: Path
) -> None:
    """Runtimes have no quantised kernel of Einsum, so the change is reported."""
    given = quantised(ATTENTION.model(), tmp_path, operators=False, per_channel=per_channel)
    result = optimize(given, minimize="count")
    assert result.accepted
    assert (
        result.after.transposes == optimised(ATTENTION.model(), einsum=True).after.transposes == 0
    )
    assert kinds(result.model) == kinds(given)
    assert any("compute them in floats" in note for note in result.record().notices)
    assert check_certificate(result.certificate(), given) == []


@pytest.mark.parametrize(
    "options",
    [{"minimize": "count", "einsum": False}, {"einsum": True}, {"target": "ort", "einsum": True}],
    ids=str,
)
def test_elsewhere_products_between_quantisers_stay_products(
    options: dict[str, Any], tmp_path: Path
) -> None:
    given = quantised(ATTENTION.model(), tmp_path, operators=False, per_channel=False)
    result = optimize(given, verify=False, **options)
    assert "Einsum" not in statements(result.model)
    assert in_bytes(result.model, tmp_path) == in_bytes(given, tmp_path)


@pytest.mark.parametrize("per_channel", [False, True], ids=["per tensor", "per channel"])
def test_a_product_with_flags_serves_like_an_einsum(per_channel: bool, tmp_path: Path) -> None:
    """ONNX Runtime has one for floats, so that no Einsum is needed, and the change is reported."""
    given = quantised(ATTENTION.model(), tmp_path, operators=False, per_channel=per_channel)
    result = optimize(given, target="ort", minimize="count")
    in_floats = optimize(ATTENTION.model(), target="ort", minimize="count", verify=False)
    assert result.accepted
    assert result.after.transposes == 0
    assert result.after.transposes <= in_floats.after.transposes
    assert "FusedMatMul" in statements(result.model)
    assert "Einsum" not in statements(result.model)
    assert kinds(result.model) == kinds(given)
    notes = [note for note in result.record().notices if "in floats" in note]
    assert len(notes) == 1
    assert notes[0].endswith("--minimize bytes keeps them in bytes")
    assert check_certificate(result.certificate(), given) == []


@pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "signed"])
def test_where_bytes_count_a_product_with_flags_is_not_taken_between_quantisers(
    signed: bool, tmp_path: Path
) -> None:
    model = ATTENTION.model()
    given = quantised(model, tmp_path, operators=False, per_channel=False, signed=signed)
    result = optimize(given, target="ort", verify=False)
    assert "FusedMatMul" not in statements(result.model)
    assert in_bytes(result.model, tmp_path) == in_bytes(given, tmp_path)


def test_what_computes_on_bytes_itself_is_never_stated_as_einsum(tmp_path: Path) -> None:
    given = quantised(ATTENTION.model(), tmp_path, operators=True, per_channel=False)
    assert "Einsum" not in statements(optimize(given, minimize="count").model)


def test_a_product_of_which_one_factor_is_real_may_become_an_einsum() -> None:
    """It is computed in floats as given."""
    given = onnx.parser.parse_model(
        HEADER.format(opset=17)
        + """g (float[2,5,4,3] x, float[2,4,3,6] z) => (float[2,5,4,6] y)
        <float s = {0.1}, uint8 b = {128}> {
            t = Transpose<perm=[0,2,1,3]>(x)
            q = QuantizeLinear(z, s, b)
            e = DequantizeLinear(q, s, b)
            m = MatMul(t, e)
            y = Transpose<perm=[0,2,1,3]>(m)
        }"""
    )
    result = optimize(given, einsum=True, minimize="count")
    assert result.accepted
    assert result.after.transposes == 0
    assert "Einsum" in statements(result.model)
    assert not any("quantisers" in note for note in result.record().notices)


def test_products_stay_products_where_einsums_round_differently(
    tmp_path: Path,
) -> None:
    """Their factors may change places all the same."""
    given = quantised(ATTENTION.model(), tmp_path, operators=False, per_channel=False, signed=False)
    result = optimize(given, minimize="count", comparing=refusing("Einsum"))
    assert result.accepted
    assert result.after == optimised(given).after
    assert 0 < result.after.transposes < result.before.transposes
    assert ROUGH in result.record().notices
    assert check_certificate(result.certificate(), given) == []
