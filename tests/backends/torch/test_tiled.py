"""Convolutions whose windows do not overlap may be products on CUDA, with the same numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from relayout.backends.torch.choose.plan import Plan  # noqa: E402 - torch may be missing
from relayout.backends.torch.choose.settings import TuningSettings  # noqa: E402
from relayout.backends.torch.choose.tuning import groups_of  # noqa: E402
from relayout.backends.torch.compiling import program_of  # noqa: E402
from relayout.backends.torch.modules.loading import loaded  # noqa: E402
from relayout.backends.torch.modules.source import write_source  # noqa: E402
from relayout.backends.torch.program.program import Program, ProgramStep  # noqa: E402
from relayout.backends.torch.providers.library import TiledConv  # noqa: E402
from relayout.backends.torch.providers.prices import Prices  # noqa: E402
from relayout.backends.torch.providers.window import known_shape  # noqa: E402
from relayout.backends.torch.providers.work import GroupWork  # noqa: E402
from tests.ops import law  # noqa: E402
from tests.rewrite.rewriting import parse  # noqa: E402

TEXT = """
g (float[2,3,4,6] x{more}) => (float[2,2,{result}] y)
<float[2,3,2,{width}] w = {{{numbers}}}, float[2] b = {{1,-2}}>
{{ {body} }}
"""
BODIES = {
    "bare": "y = Conv<strides = [2,3]>(x, w)",
    "bias": "y = Conv<strides = [2,3]>(x, w, b)",
    "bias and Relu": "c = Conv<strides = [2,3]>(x, w, b) y = Relu(c)",
    "bias and sum": "c = Conv<strides = [2,3]>(x, w, b) y = Add(c, z)",
}
OTHERS = {
    "overlapping": ("y = Conv<strides = [1,3]>(x, w)", "3,2", 3),
    "padded": ("y = Conv<strides = [2,3], pads = [1,0,1,0]>(x, w)", "3,2", 3),
    "what is left": ("y = Conv<strides = [2,4]>(x, w)", "2,1", 4),
}


def offered(body: str, result: str = "2,2", width: int = 3) -> tuple[Program, list[TiledConv]]:
    """A convolution in a program for CUDA, and the products that it may be."""
    numbers = ",".join(str(number % 7 - 3) for number in range(12 * width))
    more = ", float[2,2,2,2] z" if "z" in body else ""
    text = TEXT.format(more=more, result=result, width=width, numbers=numbers, body=body)
    program = program_of(parse(text, 17), device="cuda")
    settings = TuningSettings(prices=Prices("here"))
    plan = Plan.of(program, groups_of(program.model), settings)
    (group,) = (part.fused for part in plan.parts if part.fused is not None)
    found = [offer.candidate for offer in plan.offers(GroupWork.of(group))]
    return program, [each for each in found if isinstance(each, TiledConv)]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("place", [0, 1])
def test_products_give_the_same(body: str, place: int) -> None:
    program, forms = offered(body)
    assert [(form.reads, form.writes) for form in forms] == [("last", "last"), ("first", "last")]
    steps = (ProgramStep(tuple(program.model.graph), forms[place]),)
    source = write_source(replace(program, steps=steps, device="cpu"))
    assert "tiled(" in source.text
    drawn = np.random.default_rng(0)
    feeds = {
        str(value.name): drawn.standard_normal(known_shape(value), np.float32)
        for value in program.model.graph.inputs
    }
    plain = write_source(replace(program, device="cpu"))
    (wanted,) = loaded(plain, "cpu")(feeds).values()
    (got,) = loaded(source, "cpu")(feeds).values()
    law.compare("y", np.asarray(wanted), got, 2e-6)


@pytest.mark.parametrize(("body", "result", "width"), OTHERS.values(), ids=OTHERS)
def test_other_windows_are_none(body: str, result: str, width: int) -> None:
    assert offered(body, result, width)[1] == []
