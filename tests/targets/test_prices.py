"""Tables of prices: read, written, and what they say of Transposes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import relayout
from relayout.errors import RelayoutError
from relayout.layout.moves import Move
from relayout.layout.permutation import Permutation
from relayout.ops.measure import Objective
from relayout.targets.prices.table import RuntimePrices, read_prices, shipped
from relayout.targets.target import NHWC, ORT, asked_objective
from tests.rewrite.rewriting import parse

PRICES = shipped("onnxruntime_x86_64")

SLOW = Move.of((64, 56, 32), Permutation.of(2, 1, 0))
RUNS = Move.of((64, 56, 32), Permutation.of(1, 0, 2))


def test_a_table_is_kept_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps(PRICES.to_json()))
    assert read_prices(file) == PRICES


@pytest.mark.parametrize("text", ["{", "{}", '{"format": 1}', "[]"])
def test_what_is_no_table_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "prices.json"
    file.write_text(text)
    with pytest.raises(RelayoutError):
        read_prices(file)


def test_the_class_of_a_move_is_its_price() -> None:
    assert PRICES.transpose(SLOW, 4) > 5 * PRICES.transpose(RUNS, 4)


def test_a_slow_move_is_two_fast_ones() -> None:
    assert PRICES.split(SLOW, 4) is not None
    assert PRICES.best_transpose(SLOW, 4) < PRICES.transpose(SLOW, 4) / 2
    assert PRICES.split(RUNS, 4) is None


def test_time_is_what_a_target_with_prices_is_optimised_for() -> None:
    assert asked_objective(ORT, None) is Objective.TIME
    assert asked_objective(ORT, "count") is Objective.COUNT
    assert asked_objective(NHWC, None) is Objective.BYTES
    with pytest.raises(RelayoutError, match="no prices for the target 'nhwc'"):
        asked_objective(NHWC, "time")


WINDOWS = """
<ir_version: 10, opset_import: ["" : 17]>
g (float[8,64,32,16] x) => (float[16,32,64,8] y) {
    a = Relu(x)
    t = Transpose<perm = [0, 2, 1, 3]>(a)
    b = Exp(t)
    y = Transpose<perm = [3, 1, 2, 0]>(b)
}
"""


def test_certificates_hold_for_prices_of_ones_own() -> None:
    dear = RuntimePrices.of_json({**PRICES.to_json(), "node": 10**6})
    result = relayout.optimize(parse(WINDOWS), target="ort", prices=dear, verify=False)
    certificate = result.certificate()
    assert str(10**6) in json.dumps(certificate)
    assert relayout.check_certificate(certificate, parse(WINDOWS)) == []
