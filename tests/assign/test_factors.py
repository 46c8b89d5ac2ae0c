"""Orders that cross merging Reshapes: what is left is what brute force over the factors finds.

Every case is stated twice: as a model, and as a chain of demands on the order in which the factors
of all axes are stored. Brute force goes through all orders of the factors at every place of the
chain, so it knows nothing of operators, Reshapes or candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TypeAlias

import onnx
import pytest

import relayout
from tests.rewrite.rewriting import assert_same_numbers, parse, transposes

Demand: TypeAlias = Callable[[str], bool]


def fixed(order: str) -> Demand:
    """Stored in this order only."""
    return lambda stored: stored == order


def anyhow(_stored: str) -> bool:
    return True


def ends_with(last: str) -> Demand:
    """These factors are stored last, in this order: they are summed or normalised over."""
    return lambda stored: stored.endswith(last)


def sums(features: str) -> Demand:
    """These factors are stored last, in any order: weights are permuted instead."""
    return lambda stored: set(stored[-len(features) :]) == set(features)


def together(*runs: str) -> Demand:
    """Each run of factors is one axis to the operator."""
    return lambda stored: all(run in stored for run in runs)


def both(one: Demand, other: Demand) -> Demand:
    return lambda stored: one(stored) and other(stored)


def least_copies(factors: str, demands: Sequence[Demand]) -> int:
    """The fewest copies over all orders in which the operators of a chain can work."""
    every = ["".join(order) for order in permutations(factors)]
    cost = {order: 0 for order in every if demands[0](order)}
    for demand in demands[1:]:
        cheapest = min(cost.values())
        cost = {o: min(cost.get(o, cheapest + 1), cheapest + 1) for o in every if demand(o)}
    return min(cost.values())


@dataclass(frozen=True)
class Case:
    name: str
    model: str
    factors: str
    demands: tuple[Demand, ...]
    left: int
    why: str
    opset: int = 21


WINDOWS = "int64[6] s6 = {2,3,4,3,4,5}, int64[3] s3 = {18,16,5}"
BACK = "int64[6] back = {2,3,3,4,4,5}, int64[4] s4 = {2,12,12,5}"

CASES = (
    Case(
        "channel shuffle before a convolution",
        """g (float[2,6,4,4] x, float[6,6,1,1] w) => (float[2,6,4,4] y)
        <int64[5] s5 = {2,2,3,4,4}, int64[4] s4 = {2,6,4,4}>
        { a = Conv(x, w) b = Reshape(a, s5) c = Transpose<perm=[0,2,1,3,4]>(b)
          d = Reshape(c, s4) e = Relu(d) y = Conv(e, w) }""",
        "ngchw",
        (fixed("ngchw"), anyhow, fixed("ncghw")),
        1,
        "both convolutions want their own order of the channels",
    ),
    Case(
        "channel shuffle in a model with channels last",
        """g (float[2,4,4,6] x, float[6,6,1,1] w) => (float[2,4,4,6] y)
        <int64[5] s5 = {2,2,3,4,4}, int64[4] s4 = {2,6,4,4}>
        { t = Transpose<perm=[0,3,1,2]>(x) b = Reshape(t, s5)
          c = Transpose<perm=[0,2,1,3,4]>(b) d = Reshape(c, s4) e = Relu(d)
          y = Transpose<perm=[0,2,3,1]>(e) }""",
        "nhwgc",
        (fixed("nhwgc"), anyhow, fixed("nhwcg")),
        1,
        "input and output order the channels differently",
    ),
    Case(
        "window partition and reverse around a linear layer",
        f"""g (float[2,12,12,5] x, float[5,5] w) => (float[2,12,12,5] y)
        <{WINDOWS}, {BACK}>
        {{ a = Reshape(x, s6) b = Transpose<perm=[0,1,3,2,4,5]>(a) c = Reshape(b, s3)
          m = MatMul(c, w) r = Relu(m) d = Reshape(r, back)
          e = Transpose<perm=[0,1,3,2,4,5]>(d) y = Reshape(e, s4) }}""",
        "bHyWxc",
        (fixed("bHyWxc"), ends_with("c"), anyhow, fixed("bHyWxc")),
        0,
        "a linear layer sees every place alike, in windows or not",
    ),
    Case(
        "window partition and reverse around sums over windows",
        f"""g (float[2,12,12,5] x) => (float[2,12,12,5] y)
        <{WINDOWS}, {BACK}>
        {{ a = Reshape(x, s6) b = Transpose<perm=[0,1,3,2,4,5]>(a) c = Reshape(b, s3)
          p = Softmax<axis=1>(c) d = Reshape(p, back)
          e = Transpose<perm=[0,1,3,2,4,5]>(d) y = Reshape(e, s4) }}""",
        "bHyWxc",
        (fixed("bHyWxc"), together("yx"), fixed("bHyWxc")),
        2,
        "the softmax needs a window as one axis",
    ),
    Case(
        "window partition before heads are split",
        """g (float[2,12,12,6] x, float[6,6] w) => (float[18,2,16,3] y)
        <int64[6] s6 = {2,3,4,3,4,6}, int64[3] s3 = {18,16,6}, int64[4] h4 = {18,16,2,3}>
        { a = Reshape(x, s6) b = Transpose<perm=[0,1,3,2,4,5]>(a) c = Reshape(b, s3)
          m = MatMul(c, w) h = Reshape(m, h4) y = Transpose<perm=[0,2,1,3]>(h) }""",
        "bHyWxhd",
        (fixed("bHyWxhd"), ends_with("hd"), fixed("bHWhyxd")),
        1,
        "windows and heads move in one copy",
    ),
    Case(
        "heads split and merged around what works on every element",
        """g (float[2,7,6] x) => (float[2,7,6] y)
        <int64[4] h4 = {2,7,2,3}, int64[3] s3 = {2,7,6}>
        { a = Reshape(x, h4) b = Transpose<perm=[0,2,1,3]>(a) c = Sigmoid(b)
          d = Transpose<perm=[0,2,1,3]>(c) y = Reshape(d, s3) }""",
        "bshd",
        (fixed("bshd"), anyhow, fixed("bshd")),
        0,
        "nothing asks for heads in front",
    ),
    Case(
        "heads split and merged around a softmax over the sequence",
        """g (float[2,7,6] x) => (float[2,7,6] y)
        <int64[4] h4 = {2,7,2,3}, int64[3] s3 = {2,7,6}>
        { a = Reshape(x, h4) b = Transpose<perm=[0,2,1,3]>(a) c = Softmax<axis=2>(b)
          d = Transpose<perm=[0,2,1,3]>(c) y = Reshape(d, s3) }""",
        "bshd",
        (fixed("bshd"), together("s"), fixed("bshd")),
        0,
        "the softmax runs along the sequence wherever it is stored",
    ),
    Case(
        "pixel shuffle in a model with channels last",
        """g (float[2,3,5,8] x) => (float[2,6,10,2] y)
        <int64[6] s6 = {2,2,2,2,3,5}, int64[4] s4 = {2,2,6,10}>
        { t = Transpose<perm=[0,3,1,2]>(x) a = Reshape(t, s6)
          b = Transpose<perm=[0,1,4,2,5,3]>(a) c = Reshape(b, s4) r = Relu(c)
          y = Transpose<perm=[0,2,3,1]>(r) }""",
        "nhwcpq",
        (fixed("nhwcpq"), anyhow, fixed("nhpwqc")),
        1,
        "pixels of a block move between rows",
    ),
    Case(
        "patches of an image before a linear layer",
        """g (float[2,3,8,8] x) => (float[2,4,5] y)
        <int64[6] s6 = {2,3,2,4,2,4}, int64[3] s3 = {2,4,48}, float[48,5] w = {WEIGHTS}>
        { a = Reshape(x, s6) b = Transpose<perm=[0,2,4,3,5,1]>(a) c = Reshape(b, s3)
          y = MatMul(c, w) }""",
        "nchpwq",
        (fixed("nchpwq"), both(together("nhw"), sums("cpq"))),
        1,
        "the places of a patch must come together, the weights take any order of them",
    ),
    Case(
        "a stem that moves pixels into channels",
        """g (float[2,8,8,3] x, float[4,12,1,1] w) => (float[2,4,4,4] y)
        <int64[2] o = {0,0}, int64[2] ou = {0,1}, int64[2] uo = {1,0}, int64[2] u = {1,1},
         int64[2] e = {8,8}, int64[2] axes = {2,3}, int64[2] two = {2,2}>
        { t = Transpose<perm=[0,3,1,2]>(x)
          a = Slice(t, o, e, axes, two) b = Slice(t, uo, e, axes, two)
          c = Slice(t, ou, e, axes, two) d = Slice(t, u, e, axes, two)
          f = Concat<axis=1>(a, b, c, d) y = Conv(f, w) }""",
        "nhwc",
        (fixed("nhwc"), anyhow, fixed("nchw")),
        1,
        "the convolution wants channels first and the image has them last",
    ),
    Case(
        "a head of a detector",
        """g (float[2,6,4,4] x) => (float[2,48,2] y)
        <int64[5] s5 = {2,3,2,4,4}, int64[3] s3 = {2,48,2}>
        { a = Reshape(x, s5) b = Transpose<perm=[0,1,3,4,2]>(a) c = Reshape(b, s3)
          y = Sigmoid(c) }""",
        "nakhw",
        (fixed("nakhw"), anyhow, fixed("nahwk")),
        1,
        "the output lists boxes, the convolution gives planes",
    ),
    Case(
        "group normalisation written out, channels last",
        """g (float[2,4,4,6] x, float[2] s, float[2] z) => (float[2,4,4,6] y)
        <int64[3] s3 = {2,2,48}, int64[4] s4 = {2,6,4,4}>
        { t = Transpose<perm=[0,3,1,2]>(x) a = Reshape(t, s3)
          b = InstanceNormalization(a, s, z) c = Reshape(b, s4) r = Relu(c)
          y = Transpose<perm=[0,2,3,1]>(r) }""",
        "nhwgc",
        (fixed("nhwgc"), anyhow, anyhow, fixed("nhwgc")),
        0,
        "statistics are taken over the members of a group wherever they are stored",
    ),
)


def _weights(count: int) -> str:
    return ",".join(str(float(index % 7 - 3)) for index in range(count))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_left_is_what_brute_force_over_orders_of_factors_finds(case: Case) -> None:
    given = parse(case.model.replace("WEIGHTS", _weights(48 * 5)), case.opset)
    result = relayout.optimize(given, minimize="count", max_rank=8)
    assert result.accepted
    assert least_copies(case.factors, case.demands) == case.left, case.why
    assert transposes(result.model) == case.left, onnx.printer.to_text(result.model)
    assert_same_numbers(given, result.model, exact=False)


def test_a_certificate_over_factors_holds() -> None:
    case = next(case for case in CASES if case.name.startswith("window partition before"))
    given = parse(case.model)
    result = relayout.optimize(given, minimize="count")
    assert result.by_factors
    document = result.certificate()
    assert relayout.check_certificate(document, given) == []
    document["settings"]["by_factors"] = False
    assert relayout.check_certificate(document, given) != []


def test_a_batch_known_only_at_run_time() -> None:
    text = """g (float[N,12,12,5] x, float[5,5] w) => (float[N,12,12,5] y)
        <int64[6] s6 = {-1,3,4,3,4,5}, int64[3] s3 = {-1,16,5},
         int64[6] back = {-1,3,3,4,4,5}, int64[4] s4 = {-1,12,12,5}>
        { a = Reshape(x, s6) b = Transpose<perm=[0,1,3,2,4,5]>(a) c = Reshape(b, s3)
          m = MatMul(c, w) r = Relu(m) d = Reshape(r, back)
          e = Transpose<perm=[0,1,3,2,4,5]>(d) y = Reshape(e, s4) }"""
    given = parse(text)
    result = relayout.optimize(given, minimize="count")
    assert transposes(result.model) == 0, onnx.printer.to_text(result.model)
    assert_same_numbers(given, result.model, exact=True)


def test_where_nothing_is_gained_axes_stay_as_they_are() -> None:
    text = """g (float[2,3,4,5] x, float[5,5] w) => (float[6,4,5] y)
        <int64[3] s3 = {6,4,5}> { a = Reshape(x, s3) m = MatMul(a, w) y = Relu(m) }"""
    result = relayout.optimize(parse(text), minimize="count")
    assert not result.changed
