"""Two products as one kernel in Triton, run by a stand-in for it, give what their nodes give."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.parser import parse_model

torch = pytest.importorskip("torch")

from relayout.backends.torch.choose.plan import Plan  # noqa: E402 - torch may be missing
from relayout.backends.torch.choose.tuning import groups_of  # noqa: E402
from relayout.backends.torch.compiling import program_of  # noqa: E402
from relayout.backends.torch.modules.loading import loaded  # noqa: E402
from relayout.backends.torch.modules.source import write_source  # noqa: E402
from relayout.backends.torch.program.program import Program, ProgramStep  # noqa: E402
from relayout.backends.torch.providers.chains import ChainWork, with_chains  # noqa: E402
from relayout.backends.torch.providers.triton_chain import chain_kernels  # noqa: E402
from tests.backends.torch import small_triton  # noqa: E402
from tests.ops import law  # noqa: E402

TOLERANCE = 2e-5
PLENTY = 1 << 30
HEAD = '<ir_version: 10, opset_import: ["" : 20]> g '

Chained = tuple[str, dict[str, tuple[int, ...]]]
BOTTLENECK: Chained = (
    """(float[2,24,9,11] x, float[2,72,9,11] other) => (float[2,72,9,11] y, float[2,40,9,11] z) {
        a = Conv (x, w, b)
        s = Add (a, other)
        y = Relu (s)
        c = Conv (y, v, d)
        z = Relu (c)
    }""",
    {"w": (72, 24, 1, 1), "b": (72,), "v": (40, 72, 1, 1), "d": (40,)},
)
FIRST_OF_A_STAGE: Chained = (
    """(float[2,16,9,15] x, float[2,24,9,15] image) => (float[2,64,9,15] y, float[2,16,9,15] z) {
        a = Conv (x, w, b)
        r = Conv (image, u)
        s = Add (a, r)
        y = Relu (s)
        c = Conv (y, v)
        z = Clip (c, , most)
    }""",
    {"w": (64, 16, 1, 1), "b": (64,), "u": (64, 24, 1, 1), "v": (16, 64, 1, 1), "most": ()},
)
LAYERS: Chained = (
    """(float[3,50,24] x, float[3,50,24] other) => (float[3,50,24] z) {
        a = MatMul (x, w)
        s = Add (a, b)
        y = Relu (s)
        c = MatMul (y, v)
        t = Add (c, d)
        z = Add (t, other)
    }""",
    {"w": (24, 100), "b": (100,), "v": (100, 24), "d": (24,)},
)
ALONE: Chained = (
    """(float[130,16] x) => (float[130,32] z) {
        y = MatMul (x, w)
        z = MatMul (y, v)
    }""",
    {"w": (16, 64), "v": (64, 32)},
)


@pytest.fixture(autouse=True)
def _triton(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in small_triton.modules().items():
        monkeypatch.setitem(sys.modules, name, module)


def model_of(text: str, weights: dict[str, tuple[int, ...]]) -> onnx.ModelProto:
    model = parse_model(HEAD + text)
    drawn = np.random.default_rng(3)
    for name, shape in weights.items():
        array = np.asarray(drawn.standard_normal(shape) / 5, np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def steps_of(program: Program, least: int = 0) -> list[ChainWork | ProgramStep]:
    plan = Plan.of(program, groups_of(program.model))
    groups = {part.nodes[-1]: part.fused for part in plan.parts if part.fused is not None}
    steps = [ProgramStep(part.nodes) for part in plan.parts]
    return with_chains(steps, groups, plan.site, least)


def works_of(text: str, weights: dict[str, tuple[int, ...]], least: int = 0) -> list[ChainWork]:
    steps = steps_of(program_of(model_of(text, weights)), least)
    return [step for step in steps if isinstance(step, ChainWork)]


@pytest.mark.parametrize(
    "chained",
    [BOTTLENECK, FIRST_OF_A_STAGE, LAYERS, ALONE],
    ids=["bottleneck", "first of a stage", "layers", "alone"],
)
def test_one_kernel_gives_what_two_products_give(chained: Chained) -> None:
    model = model_of(*chained)
    drawn = np.random.default_rng(5)
    feeds: dict[str, Any] = {
        value.name: drawn.standard_normal(
            [dim.dim_value for dim in value.type.tensor_type.shape.dim], np.float32
        )
        for value in model.graph.input
    }
    wanted = law.run(model, feeds, "ort")
    program = program_of(model)
    (work,) = steps_of(program)
    assert isinstance(work, ChainWork)
    kernels = chain_kernels(work.chain, PLENTY)
    assert kernels
    for kernel in kernels:
        source = write_source(Program(program.model, (ProgramStep(work.nodes, kernel),)))
        assert source.text.count("@triton.jit") == 1
        for before, after in zip(wanted, loaded(source, "cpu")(feeds).values(), strict=True):
            law.compare(kernel.name, before, after, TOLERANCE)


def test_what_is_between_is_stored_only_if_something_else_reads_it() -> None:
    (kept,), (passed_on,) = works_of(*BOTTLENECK), works_of(*LAYERS)
    assert kept.chain.is_middle_kept
    assert not passed_on.chain.is_middle_kept


def test_a_product_that_is_added_comes_along_only_where_nothing_else_reads_it() -> None:
    text, weights = FIRST_OF_A_STAGE
    (work,) = works_of(text, weights)
    assert work.chain.added is not None
    shown = text.replace("=> (", "=> (float[2,64,9,15] r, ")
    (work,) = works_of(shown, weights)
    assert work.chain.added is None


def test_a_product_is_in_one_chain_only() -> None:
    text = """(float[50,16] x) => (float[50,16] z) {
        a = MatMul (x, w)
        b = MatMul (a, v)
        c = MatMul (b, w)
        z = MatMul (c, v)
    }"""
    steps = steps_of(program_of(model_of(text, {"w": (16, 32), "v": (32, 16)})))
    assert [len(step.nodes) for step in steps] == [2, 2]


@pytest.mark.parametrize(
    "other",
    [
        "c = Conv <strides = [2, 2]> (y, v, d)",
        "c = Conv <pads = [1, 1, 1, 1]> (y, v, d)",
        "t = Sigmoid (y) c = Conv (t, v, d)",
    ],
)
def test_what_reads_in_another_way_is_a_step_of_its_own(other: str) -> None:
    text, weights = BOTTLENECK
    text = text.replace("float[2,40,9,11] z", "float[2,40,H,W] z")
    assert not works_of(text.replace("c = Conv (y, v, d)", other), weights)


def test_products_with_a_gelu_between_them_are_left_to_libraries() -> None:
    text, weights = LAYERS
    assert works_of(text, weights)
    assert not works_of(text.replace("Relu", "Gelu"), weights)


def test_a_second_product_waits_for_what_is_added_to_it() -> None:
    text = """(float[50,16] x) => (float[50,16] z) {
        a = MatMul (x, w)
        e = Exp (a)
        r = Einsum <equation = "ij->ij"> (e)
        f = MatMul (r, v)
        c = MatMul (a, v)
        z = Add (c, f)
    }"""
    works = works_of(text, {"w": (16, 32), "v": (32, 16)})
    assert not [work for work in works if work.chain.second.residual is not None]


def test_what_stays_in_the_cache_is_left_to_libraries() -> None:
    saved = 2 * 72 * 9 * 11 * 4
    assert works_of(*BOTTLENECK, saved)
    assert not works_of(*BOTTLENECK, saved + 1)


def test_tiles_fit_into_the_memory_that_there_is() -> None:
    (work,) = works_of(*BOTTLENECK)
    (more, _), (few, _) = (chain_kernels(work.chain, size) for size in (PLENTY, 72 << 10))
    assert few.stages < more.stages
    assert not chain_kernels(work.chain, 1 << 10)
