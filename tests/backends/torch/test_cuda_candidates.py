"""What is tried on CUDA in half precision, as far as a machine without a GPU can tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest

torch = pytest.importorskip("torch")

from relayout.backends.torch.choose.parts import parts_of  # noqa: E402 - torch may be missing
from relayout.backends.torch.choose.plan import Plan  # noqa: E402
from relayout.backends.torch.choose.settings import TuningSettings  # noqa: E402
from relayout.backends.torch.choose.tuning import groups_of, tuned  # noqa: E402
from relayout.backends.torch.compiling import program_of  # noqa: E402
from relayout.backends.torch.modules.loading import loaded  # noqa: E402
from relayout.backends.torch.modules.source import write_source  # noqa: E402
from relayout.backends.torch.program.program import Program, ProgramStep  # noqa: E402
from relayout.backends.torch.providers.library import Linear  # noqa: E402
from relayout.backends.torch.providers.prices import Price, Prices  # noqa: E402
from relayout.backends.torch.providers.provider import Candidate  # noqa: E402
from relayout.backends.torch.providers.site import Site  # noqa: E402
from relayout.backends.torch.providers.work import GroupWork, Work  # noqa: E402
from tests.ops import law  # noqa: E402
from tests.rewrite.rewriting import parse  # noqa: E402

VOCABULARY = """
    g (float[2,3] x) => (float[2,{columns}] y)
    <float[3,{columns}] w = {{{numbers}}}, float[{columns}] b = {{{numbers_of_b}}}> {{
      z = MatMul(x, w)
      y = Add(z, b) }}"""

CONV = """
    g (float[1,{read},8,8] x) => (float[1,{made},6,6] y)
    <float[{made},{read},3,3] w = {{{numbers}}}> {{
      z = Conv(x, w)
      y = Relu(z) }}"""

UP = """
    g (float[1,2,4,4] x, float[1,2,8,8] kept) => (float[1,4,8,8] y)
    <float[2,2,2,2] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}, float[2] b = {1,-2}> {
      up = ConvTranspose<strides = [2, 2]>(x, w, b)
      y = Concat<axis = 1>(kept, up) }"""

CUT = """
    g (float[1,2,4,4] x, float[1,2,4,4] z) => (float[1,4,4,4] y, float[1,2,4,4] s) {
      s = Sigmoid(x)
      t = Tanh(z)
      y = Concat<axis = 1>(s, t) }"""


CYCLE = """
    g (float[1,2,4,4] x, float[1,2,4,4] z) => (float[1,4,4,4] y) {
      s = Sigmoid(x)
      t = Mul(s, z)
      r = Softmax<axis = 3>(s)
      y = Concat<axis = 1>(t, r) }"""


def vocabulary(columns: int) -> str:
    weights = ",".join(str(number % 7 - 3) for number in range(3 * columns))
    biases = ",".join(str(number % 5 - 2) for number in range(columns))
    return VOCABULARY.format(columns=columns, numbers=weights, numbers_of_b=biases)


def plan_of(text: str, dtype: str | None = "float16") -> Plan:
    program = program_of(parse(text, 17), device="cuda", dtype=dtype)
    return Plan.of(program, groups_of(program.model), TuningSettings(prices=Prices("here")))


def names(plan: Plan) -> list[str]:
    (group,) = (part.fused for part in plan.parts if part.fused is not None)
    return [offer.candidate.name for offer in plan.offers(GroupWork.of(group))]


@pytest.mark.parametrize(("columns", "is_padded"), [(5, True), (8, False), (13, True)])
def test_products_of_odd_sizes_are_also_tried_padded(columns: int, is_padded: bool) -> None:
    assert ("linear padded" in names(plan_of(vocabulary(columns)))) == is_padded
    assert "linear padded" not in names(plan_of(vocabulary(columns), None))


@pytest.mark.parametrize("columns", [5, 13])
def test_columns_that_are_added_are_not_read(columns: int) -> None:
    model = parse(vocabulary(columns), 17)
    (group,) = (part.fused for part in plan_of(vocabulary(columns)).parts if part.fused)
    candidate = Linear(group, more=-columns % 8)
    graph = group.anchor.graph
    assert isinstance(graph, ir.Graph)
    padded = Program(ir.Model(graph, ir_version=10), (ProgramStep(group.nodes, candidate),))
    feeds = {"x": np.random.default_rng(0).standard_normal((2, 3), np.float32)}
    (wanted,) = law.run(model, feeds, "ort")
    (got,) = loaded(write_source(padded), "cpu")(feeds).values()
    law.compare("y", wanted, got, 2e-6)


@pytest.mark.parametrize(
    ("read", "made", "dtype", "is_tried"),
    [
        (16, 16, "float16", False),
        (3, 16, "float16", True),
        (16, 2, "float16", True),
        (16, 16, None, True),
    ],
)
def test_channels_first_is_tried_where_it_may_be_faster(
    read: int, made: int, dtype: str | None, is_tried: bool
) -> None:
    numbers = ",".join(["1"] * (9 * read * made))
    found = names(plan_of(CONV.format(read=read, made=made, numbers=numbers), dtype))
    assert any(name.endswith("first") for name in found) == is_tried


def kernels_first(_work: Work, candidates: Sequence[Candidate], _site: Site) -> list[Price]:
    return [Price(1.0 if each.name == "kernel" else 2.0) for each in candidates]


def steps_of(text: str, monkeypatch: pytest.MonkeyPatch) -> Program:
    timed = "relayout.backends.torch.choose.joined._timed"
    monkeypatch.setattr(
        timed, lambda programs: [Price(float(at + 1)) for at in range(len(programs))]
    )
    monkeypatch.setattr(torch, "compile", lambda function, **_options: function)
    settings = TuningSettings(prices=Prices("here"), timer=kernels_first)
    return tuned(program_of(parse(text, 17), device="cuda"), settings)[0]


def test_a_join_takes_along_the_bias_of_a_transposed_convolution(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = steps_of(UP, monkeypatch)
    kinds = [[node.op_type for node in step.nodes] for step in program.steps]
    assert kinds == [["ConvTranspose"], ["Add", "Concat"]]
    draw = np.random.default_rng(0).standard_normal
    feeds = {"x": draw((1, 2, 4, 4), np.float32), "kept": draw((1, 2, 8, 8), np.float32)}
    (wanted,) = law.run(parse(UP, 17), feeds, "ort")
    (got,) = loaded(write_source(replace(program, device="cpu")), "cpu")(feeds).values()
    law.compare("y", wanted, got, 2e-6)


def test_what_is_read_elsewhere_too_stays_outside_of_a_join(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = steps_of(CUT, monkeypatch)
    kinds = [sorted(node.op_type for node in step.nodes) for step in program.steps]
    assert sorted(kinds) == [["Concat", "Tanh"], ["Sigmoid"]]


def test_what_another_operand_of_a_join_needs_is_computed_before_it() -> None:
    graph = program_of(parse(CYCLE, 17), device="cuda").model.graph
    sigmoid, product, softmax, join = graph
    parts = parts_of(graph, [(sigmoid, product)])
    assert [part.nodes for part in parts] == [(sigmoid, product), (softmax,), (join,)]
    parts = parts_of(graph, [])
    assert [part.nodes for part in parts] == [(sigmoid,), (softmax,), (product, join)]
