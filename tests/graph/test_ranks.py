"""Ranks that follow from the length of a target shape."""

from __future__ import annotations

import onnx
import pytest

from relayout.graph.io.load import load
from relayout.graph.read import shape_of

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'


def shapes(text: str) -> dict[str, tuple[int | str | None, ...] | None]:
    loaded = load(onnx.parser.parse_model(HEADER + text))
    return {str(v.name): shape_of(v) for node in loaded.ir.graph for v in node.outputs}


@pytest.mark.parametrize("operator", ["Reshape(x, t)", "ConstantOfShape(t)"])
def test_a_target_of_known_length_gives_the_rank(operator: str) -> None:
    found = shapes(
        f"g (float[N,M] x, int64[3] t) => (float[A,B,C] y) {{ r = {operator} y = Relu(r) }}"
    )
    assert found["r"] is not None
    assert len(found["r"]) == 3


def test_known_entries_of_a_concatenated_target_are_lengths() -> None:
    found = shapes(
        """g (float[N,M] x, int64[2] n, float[4] c) => (float[A,B,4] y)
           <int64[1] last = {4}> {
            p = Neg(n)
            t = Concat<axis=0>(p, last)
            r = Reshape(x, t)
            y = Add(r, c)
        }"""
    )
    assert found["r"] is not None
    assert found["r"][2] == 4
    assert not any(isinstance(length, int) for length in found["r"][:2])


def test_entries_that_copy_or_infer_are_not_lengths() -> None:
    found = shapes(
        """g (float[N,M] x, int64[1] n) => (float[A,B,C] y)
           <int64[2] ends = {0, -1}> {
            p = Neg(n)
            t = Concat<axis=0>(p, ends)
            r = Reshape(x, t)
            y = Relu(r)
        }"""
    )
    assert found["r"] is not None
    assert len(found["r"]) == 3
    assert not any(isinstance(length, int) for length in found["r"])


def test_what_follows_from_a_derived_rank_is_inferred_too() -> None:
    found = shapes(
        """g (float[N,M] x, int64[3] t, int64[2] u) => (float[A,B] y) {
            r = Reshape(x, t)
            s = Transpose<perm=[2,0,1]>(r)
            q = Reshape(s, u)
            y = Relu(q)
        }"""
    )
    assert [len(found[name] or ()) for name in "rsq"] == [3, 3, 2]


def test_a_target_of_unknown_length_gives_nothing() -> None:
    found = shapes("g (float[N,M] x, int64[K] t) => (float[A] y) { r = Reshape(x, t) y = Relu(r) }")
    assert found["r"] is None


def test_a_normalisation_by_groups_keeps_the_shape() -> None:
    found = shapes(
        """g (float[N,6,4] x, float[6] s) => (float[A,B] y)
           <int64[2] flat = {0, -1}> {
            r = GroupNormalization<num_groups = 3>(x, s, s)
            t = Relu(r)
            y = Reshape(t, flat)
        }"""
    )
    assert found["r"] == found["t"] == ("N", 6, 4)


def test_a_spectrum_has_one_side_by_default() -> None:
    text = """
    <ir_version: 9, opset_import: ["" : 19]>
    g (float[1,128,1] x) => (float[a,b,c,d] y) <int64 step = {8}, int64 length = {16}>
    { y = STFT (x, step, "", length) }
    """
    loaded = load(onnx.parser.parse_model(text))
    assert shape_of(loaded.ir.graph.outputs[0]) == (1, 15, 9, 2)
