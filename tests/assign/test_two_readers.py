"""A tensor and what is made of it, both given out in another order: one Transpose is enough."""

from __future__ import annotations

import onnx
import pytest

import relayout

SHAPES = (
    ((2, 3, 5, 7), (0, 3, 1, 2)),
    ((1, 3, 1, 4), (0, 3, 1, 2)),
    ((1, 4, 1, 3), (0, 2, 3, 1)),
    ((3, 1, 5, 1), (2, 0, 3, 1)),
    ((2, 1, 3, 1, 4), (0, 4, 1, 2, 3)),
    ((5, 1, 2), (2, 1, 0)),
)


@pytest.mark.parametrize("made", ["Relu(x)", "Exp(x)", "Softplus(x)", "Mul(x, x)", "Sub(x, half)"])
@pytest.mark.parametrize(("shape", "perm"), SHAPES)
@pytest.mark.parametrize("minimize", ["count", "bytes"])
def test_axes_of_length_one_do_not_hide_it(
    shape: tuple[int, ...], perm: tuple[int, ...], made: str, minimize: str
) -> None:
    dims, order = (",".join(map(str, each)) for each in (shape, perm))
    free = ",".join("pqrst"[: len(shape)])
    result = relayout.optimize(
        onnx.parser.parse_model(
            f"""<ir_version: 8, opset_import: ["" : 17]>
            g (float[{dims}] x) => (float[{free}] y, float[{free}] z) <float half = {{0.5}}> {{
                y = Transpose<perm = [{order}]>(x)
                m = {made}
                z = Transpose<perm = [{order}]>(m)
            }}"""
        ),
        minimize=minimize,
        verify=False,
    )
    assert result.before.transposes == 2
    assert result.after.transposes <= 1
    assert result.least
