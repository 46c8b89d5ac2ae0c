"""No Transpose is put where its opset takes no elements of such a type."""

from __future__ import annotations

import onnx
import pytest

import relayout

BECOMES = {
    "Cast": "y = Cast<to = {number}>(t)",
    "Cast, unsaturated": "y = Cast<saturate = 0, to = {number}>(t)",
    "QuantizeLinear": "y = QuantizeLinear(t, half, zero)",
}
KINDS = {"float8e4m3fn": 17, "float8e4m3fnuz": 18, "float8e5m2": 19, "float8e5m2fnuz": 20}


def model(becomes: str, kind: str, version: int) -> onnx.ModelProto:
    body = BECOMES[becomes].format(number=KINDS[kind])
    return onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["" : {version}]>
        g (float[2,3,4,5] x, {kind} zero) => (float[p,q,r,s] w, {kind}[a,b,c,d] y)
        <float half = {{0.5}}> {{
            u = Relu(x)
            t = Transpose<perm = [0, 2, 1, 3]>(u)
            {body}
            v = Transpose<perm = [0, 2, 1, 3]>(t)
            w = Neg(v)
        }}"""
    )


@pytest.mark.parametrize("version", [19, 20, 21])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("becomes", BECOMES)
@pytest.mark.parametrize("minimize", ["count", "bytes"])
def test_results_are_valid(becomes: str, kind: str, version: int, minimize: str) -> None:
    given = model(becomes, kind, version)
    onnx.checker.check_model(given, full_check=True)
    result = relayout.optimize(given, minimize=minimize, verify=False)
    onnx.checker.check_model(result.model, full_check=True)
    assert result.after.transposes == 1
