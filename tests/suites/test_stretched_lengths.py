"""Lengths with different names are not taken for equal: one of them may be 1 in some run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import relayout
from tests.rewrite.rewriting import parse
from tests.samples.sample import Array
from tests.suites.stretched_graphs import StretchedGraph

SEEDS = range(16)
RUNS = range(12)


REFUSED = tuple(
    getattr(ort.capi.onnxruntime_pybind11_state, name)
    for name in ("Fail", "InvalidArgument", "InvalidGraph", "RuntimeException")
)
"""What ONNX Runtime raises where lengths do not fit."""


def results(
    model: onnx.ModelProto, runs: Sequence[Mapping[str, Array]]
) -> list[list[Array] | None]:
    """What a model gives in each run; None where it cannot run."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(model.SerializeToString(), options)
    except REFUSED:
        return [None] * len(runs)
    return [_result(session, feeds) for feeds in runs]


def _result(session: ort.InferenceSession, feeds: Mapping[str, Array]) -> list[Array] | None:
    try:
        return list(session.run(None, dict(feeds)))
    except REFUSED:
        return None


DIRECTED = {
    "a merged axis": (
        """(float[2,4,3] x, float[S] y) => (float[2,4,3] z)
        <int64[2] merged = {2, 12}, int64[3] split = {2, 3, 4}> {
            t = Transpose<perm=[0,2,1]>(x)
            r = Reshape(t, merged)
            a = Add(r, y)
            s = Reshape(a, split)
            z = Transpose<perm=[0,2,1]>(s)
        }""",
        (((2, 4, 3), (12,)), ((2, 4, 3), (1,))),
    ),
    "a length that a shape states": (
        """(float[4,N] x, float[4,M] y) => (float[2,P,Q] z)
        <int64[2] split = {2, -1}> {
            a = Add(x, y)
            t = Transpose<perm=[1,0]>(a)
            n = Shape<start=1>(x)
            to = Concat<axis=0>(n, split)
            s = Reshape(t, to)
            z = Transpose<perm=[1,2,0]>(s)
        }""",
        (((4, 5), (4, 5)), ((4, 1), (4, 5)), ((4, 5), (4, 1))),
    ),
    "a batch of products": (
        """(float[N,5,2,3] x, float[M,5,2,3] y) => (float[P,5,2,2] z) {
            t = Transpose<perm=[0,2,1,3]>(x)
            u = Transpose<perm=[0,2,3,1]>(y)
            m = MatMul(t, u)
            z = Transpose<perm=[0,2,1,3]>(m)
        }""",
        (((3, 5, 2, 3), (3, 5, 2, 3)), ((1, 5, 2, 3), (3, 5, 2, 3)), ((3, 5, 2, 3), (1, 5, 2, 3))),
    ),
}
"""Graphs that equal lengths would have fewer Transposes of, with the shapes of some runs."""


@pytest.mark.parametrize("target", ["onnx", "ort"])
@pytest.mark.parametrize("case", DIRECTED)
def test_names_that_differ_are_not_one_length(case: str, target: str) -> None:
    text, shapes = DIRECTED[case]
    model = parse(f"g {text}", 17)
    numbers = np.random.default_rng(0)
    runs = [
        {
            name: numbers.standard_normal(dims).astype(np.float32)
            for name, dims in zip("xy", each, strict=True)
        }
        for each in shapes
    ]
    result = relayout.optimize(model, target=target, minimize="count", verify=False)
    for given, made in zip(results(model, runs), results(result.model, runs), strict=True):
        assert given is not None
        assert made is not None
        np.testing.assert_allclose(made[0], given[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_restated_holds_for_every_length(seed: int) -> None:
    graph = StretchedGraph.of(seed)
    model = graph.model()
    runs = [graph.feeds(run) for run in RUNS]
    wanted = results(model, runs)
    ran = [place for place, found in enumerate(wanted) if found is not None]
    for target in ("onnx", "ort") if ran else ():
        result = relayout.optimize(model, target=target, minimize="count", verify=False)
        found = results(result.model, [runs[place] for place in ran])
        for place, made in zip(ran, found, strict=True):
            given = wanted[place]
            assert given is not None
            assert made is not None
            for one, other in zip(given, made, strict=True):
                np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-4)


def test_some_runs_stretch_and_some_transposes_go() -> None:
    """Or the test above would show nothing."""
    graphs = [StretchedGraph.of(seed) for seed in SEEDS]
    runs = [results(graph.model(), [graph.feeds(run) for run in RUNS]) for graph in graphs]
    assert sum(any(found is not None for found in each) for each in runs) > len(graphs) / 4
    gains = 0
    for graph in graphs[:8]:
        result = relayout.optimize(graph.model(), minimize="count", verify=False)
        gains += result.after.transposes < result.before.transposes
    assert gains >= 2
