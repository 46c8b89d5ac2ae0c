"""Groups of the choice of kernels are read as forms of the libraries, the rest as kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from tests.backends.torch.random_groups import random_model
from tests.ops import law

torch = pytest.importorskip("torch")

from relayout.backends.torch.choose.parts import GroupPart, parts_of, split  # noqa: E402
from relayout.backends.torch.choose.settings import TuningSettings  # noqa: E402
from relayout.backends.torch.choose.tuning import groups_of, tuned  # noqa: E402
from relayout.backends.torch.compiling import program_of  # noqa: E402 - torch may be missing
from relayout.backends.torch.modules.loading import loaded  # noqa: E402
from relayout.backends.torch.modules.source import write_source  # noqa: E402
from relayout.backends.torch.providers.inductor_provider import SLOW  # noqa: E402
from relayout.backends.torch.providers.prices import Price, Prices  # noqa: E402
from relayout.backends.torch.providers.provider import Candidate  # noqa: E402
from relayout.backends.torch.providers.registry import providers_named  # noqa: E402
from relayout.backends.torch.providers.site import Site  # noqa: E402
from relayout.backends.torch.providers.work import Work  # noqa: E402

HEAD = '<ir_version: 10, opset_import: ["" : 20]>'
WEIGHT = "float[4,4,1,1] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}"


def graph_of(body: str, inputs: str = "float[2,4,5,5] x, float[2,4,5,5] z") -> ir.Graph:
    text = f"{HEAD} g ({inputs}) => (float[2,4,5,5] y) <{WEIGHT}> {{ {body} }}"
    return program_of(onnx.parser.parse_model(text)).model.graph


def operators(parts: Sequence[GroupPart]) -> list[tuple[str, bool]]:
    return [
        (" ".join(node.op_type for node in part.nodes), part.fused is not None) for part in parts
    ]


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("c = Conv(x, w) s = Add(c, z) y = Relu(s)", [("Conv Add Relu", True)]),
        (
            "c = Conv(x, w) s = Sigmoid(c) y = Mul(c, s)",
            [("Conv", True), ("Sigmoid Mul", False)],
        ),
        (
            "e = Exp(z) c = Conv(x, w) s = Add(c, e) r = Relu(s) y = Tanh(r)",
            [("Exp", False), ("Conv Add Relu", True), ("Tanh", False)],
        ),
        ("e = Exp(z) s = Sigmoid(e) y = Mul(s, x)", [("Exp Sigmoid Mul", False)]),
    ],
)
def test_a_group_is_split_where_libraries_stop(body: str, wanted: list[tuple[str, bool]]) -> None:
    nodes = list(graph_of(body))
    assert operators(split(nodes)) == wanted


def test_a_form_ends_where_its_result_is_read_outside_of_the_group() -> None:
    nodes = list(graph_of("c = Conv(x, w) s = Add(c, z) y = Relu(s)"))
    assert operators(split(nodes[:2])) == [("Conv Add", True)]


def test_parts_come_after_all_that_they_read() -> None:
    graph = graph_of("a = Exp(x) b = Tanh(z) c = Relu(a) d = Sigmoid(b) y = Add(c, d)")
    nodes = {node.outputs[0].name: node for node in graph}
    late_first = [[nodes["y"]], [nodes["a"], nodes["c"]], [nodes["b"], nodes["d"]]]
    order = [part.nodes[-1].outputs[0].name for part in parts_of(graph, late_first)]
    assert order == ["c", "d", "y"]


def test_nodes_of_no_group_stay() -> None:
    graph = graph_of("a = Exp(x) b = Tanh(a) y = Add(b, z)")
    _, *rest = graph
    parts = parts_of(graph, [rest])
    assert operators(parts) == [("Exp", False), ("Tanh Add", False)]


def most_fused(_work: Work, candidates: Sequence[Candidate], _site: Site) -> list[Price]:
    """C++ kernels, or else kernels of Inductor, count as the fastest; nothing is quick."""
    names = [candidate.name for candidate in candidates]
    best = "native" if "native" in names else names[-1]
    return [Price(SLOW if name == best else 2 * SLOW) for name in names]


def settings(*, is_native: bool) -> TuningSettings:
    names = ["library", "inductor", *(["native"] if is_native else [])]
    return TuningSettings(providers_named(names), most_fused, Prices("made up"))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("built", [True, False])
def test_random_graphs_give_the_same_numbers(
    seed: int, built: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every group as a kernel, run as it is; with C++ kernels around it and without."""
    monkeypatch.setattr(torch, "compile", lambda function, **_options: function)
    model, feeds = random_model(seed)
    program, _ = tuned(program_of(model), settings(is_native=built))
    done = [node for step in program.steps for node in step.nodes]
    assert len(done) == len(set(done)) == len(program.model.graph)
    outputs = loaded(write_source(program), "cpu")(feeds)
    for wanted, (name, got) in zip(law.run(model, feeds, "ort"), outputs.items(), strict=True):
        law.compare(name, wanted, got, 1e-4)


CURVES = {
    "SiLU": "s = Sigmoid(c) a = Mul(c, s)",
    "HardSwish": "a = HardSwish(c)",
    "GELU": "q = Div(c, root) r = Erf(q) t = Add(r, one) u = Mul(c, t) a = Mul(u, half)",
}


def curved(curve: str) -> onnx.ModelProto:
    """Convolutions with curves between them, and weights of their own."""
    model = onnx.parser.parse_model(f"""
{HEAD}
g (float[1,16,6,6] x) => (float[1,16,6,6] y)
<float root = {{1.41421356}}, float one = {{1.0}}, float half = {{0.5}}>
{{ c = Conv(x, w)
  {CURVES[curve]}
  f = Conv<group=16, pads=[1,1,1,1]>(a, d)
  h = HardSwish(f)
  e = Conv(h, w)
  y = Sigmoid(e) }}
""")
    drawn = np.random.default_rng(4)
    for name, shape in {"w": (16, 16, 1, 1), "d": (16, 1, 3, 3)}.items():
        array = drawn.standard_normal(shape, np.float32) / 4
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return model


@pytest.mark.parametrize("curve", CURVES)
def test_curves_do_not_end_a_program_of_cpp_kernels(curve: str) -> None:
    model = curved(curve)
    program, _ = tuned(program_of(model), settings(is_native=True))
    assert len(program.steps) == 1
    feeds = {"x": np.random.default_rng(3).standard_normal((1, 16, 6, 6), np.float32)}
    (wanted,) = law.run(model, feeds, "ort")
    law.compare("y", wanted, loaded(write_source(program), "cpu")(feeds)["y"], 2e-5)


EQUAL = f"""
{HEAD}
g (float[2,8,5,5] x) => (float[2,8,5,5] y)
<float[8,1,1] k = {{1,2,3,4,5,6,7,8}}, float[8,1,1] l = {{8,7,6,5,4,3,2,1}}, int64 axis = {{1}}>
{{ a = Mul(x, k)
  b = Sigmoid(a)
  m = CumSum(b, axis)
  d = Mul(m, l)
  y = Sigmoid(d) }}
"""


UNEQUAL = f"""
{HEAD}
g (float[B,5] x) => (float[B,L] y) <int64 axis = {{1}}>
{{ a = Tanh(x)
  b = Sigmoid(a)
  c = CumSum(b, axis)
  d = Concat<axis = 1>(c, c)
  e = CumSum(d, axis)
  f = Tanh(e)
  y = Sigmoid(f) }}
"""


def test_equal_groups_share_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda function, **_options: function)
    model = onnx.parser.parse_model(EQUAL)
    program, _ = tuned(program_of(model), settings(is_native=False))
    source = write_source(program)
    assert source.text.count("= InductorKernel(group, dynamic=False)") == 1
    assert source.text.count("w.kernel(") == 2
    feeds = {"x": np.random.default_rng(3).standard_normal((2, 8, 5, 5), np.float32)}
    (wanted,) = law.run(model, feeds, "ort")
    law.compare("y", wanted, loaded(source, "cpu")(feeds)["y"], 2e-5)


@pytest.mark.parametrize(
    ("batch", "length", "kernels"),
    [("2", "10", ["group, dynamic=False", "group_1, dynamic=False"]), ("N", "M", ["group"])],
)
def test_kernels_are_compiled_for_the_lengths_that_are_known(
    batch: str, length: str, kernels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal groups of other lengths have kernels of their own, unless lengths are open."""
    monkeypatch.setattr(torch, "compile", lambda function, **_options: function)
    model = onnx.parser.parse_model(UNEQUAL.replace("B", batch).replace("L", length))
    program, _ = tuned(program_of(model), settings(is_native=False))
    source = write_source(program)
    assert re.findall(r"= InductorKernel\((.*)\)", source.text) == kernels
    feeds = {"x": np.random.default_rng(3).standard_normal((2, 5), np.float32)}
    (wanted,) = law.run(model, feeds, "ort")
    law.compare("y", wanted, loaded(source, "cpu")(feeds)["y"], 2e-5)


def test_cheap_groups_are_not_compiled_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_given: Any, **_options: Any) -> Any:
        raise AssertionError("compiled")

    monkeypatch.setattr(torch, "compile", fail)
    program, choices = tuned(program_of(onnx.parser.parse_model(EQUAL)))
    assert len(groups_of(program.model)) < len(program.model.graph)
    assert not any(choice.chosen == "kernel" for choice in choices)


ASIDE = f"""
{HEAD}
g (float[1,8,9,9] x) => (float[1,8,4,4] y)
{{ c = Conv <pads = [0, 0, 1, 1], strides = [2, 2], kernel_shape = [3, 3]> (x, w)
  r = Relu(c)
  d = Conv <pads = [0, 0, 1, 1], kernel_shape = [2, 2]> (r, v)
  y = Clip(d, low) }}
"""


@pytest.mark.parametrize("built", [True, False])
def test_forms_that_libraries_lack(built: bool) -> None:
    """Windows that lie to one side, which oneDNN's fused kernels do not take."""
    model = onnx.parser.parse_model(ASIDE)
    source = np.random.default_rng(3)
    arrays = {
        "w": source.standard_normal((8, 8, 3, 3), np.float32),
        "v": source.standard_normal((8, 8, 2, 2), np.float32),
        "low": np.array(-0.5, np.float32),
    }
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()
    )
    feeds = {"x": source.standard_normal((1, 8, 9, 9), np.float32)}
    program, _ = tuned(program_of(model), settings(is_native=built))
    (wanted,) = law.run(model, feeds, "ort")
    law.compare("y", wanted, loaded(write_source(program), "cpu")(feeds)["y"], 2e-5)


OPEN = f"""
{HEAD}
g (float[batch,n,9,9] x) => (float[batch,8,9,9] y)
{{ c = Conv <pads = [1, 1, 1, 1], kernel_shape = [3, 3]> (x, w)
  y = Relu(c) }}
"""


def test_channels_that_are_not_known() -> None:
    model = onnx.parser.parse_model(OPEN)
    source = np.random.default_rng(3)
    array = source.standard_normal((8, 5, 3, 3), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(array, "w"))
    program, choices = tuned(program_of(model))
    assert not choices
    for batch in (1, 2):
        feeds = {"x": source.standard_normal((batch, 5, 9, 9), np.float32)}
        (wanted,) = law.run(model, feeds, "ort")
        law.compare("y", wanted, loaded(write_source(program), "cpu")(feeds)["y"], 2e-5)
