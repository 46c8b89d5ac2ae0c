"""On CUDA a program is also timed as Inductor compiles all of it, in its layouts and as given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx
import pytest

torch = pytest.importorskip("torch")

from relayout.backends.torch.choose import joined  # noqa: E402 - torch may be missing
from relayout.backends.torch.choose.choices import Choice  # noqa: E402
from relayout.backends.torch.choose.settings import TuningSettings  # noqa: E402
from relayout.backends.torch.choose.tuning import tuned  # noqa: E402
from relayout.backends.torch.compiling import program_of  # noqa: E402
from relayout.backends.torch.modules.loading import loaded  # noqa: E402
from relayout.backends.torch.modules.source import write_source  # noqa: E402
from relayout.backends.torch.program.program import Program  # noqa: E402
from relayout.backends.torch.providers.prices import Price, Prices  # noqa: E402
from relayout.backends.torch.providers.provider import Candidate  # noqa: E402
from relayout.backends.torch.providers.site import Site  # noqa: E402
from relayout.backends.torch.providers.work import Work  # noqa: E402
from tests.ops import law  # noqa: E402
from tests.rewrite.rewriting import parse  # noqa: E402

PLAIN = """
    g (float[3,4] x) => (float[3,2] y)
    <float[4,2] w = {1,2,3,4,5,6,7,8}> {
      z = MatMul(x, w)
      y = Relu(z) }"""

TURNED = """
    g (float[3,4] x) => (float[3,4] y) {
      t = Transpose<perm = [1, 0]>(x)
      r = Sigmoid(t)
      y = Transpose<perm = [1, 0]>(r) }"""


def in_order(_work: Work, candidates: Sequence[Candidate], _site: Site) -> list[Price]:
    return [Price(float(place + 1)) for place, _ in enumerate(candidates)]


SLID = """
    g (float[1,3,8,8] x) => (float[1,2,8,8] y)
    <float[2,3,1,1] w = {1,2,3,4,5,6}> {
      z = Conv(x, w)
      y = Sigmoid(z) }"""


def chosen(
    monkeypatch: pytest.MonkeyPatch, text: str, *seconds: float
) -> tuple[onnx.ModelProto, Program, Choice]:
    """The program where the ways take so long, and what is reported of them."""
    left = iter(seconds)
    monkeypatch.setattr(joined, "_timed", lambda programs: [Price(next(left)) for _ in programs])
    model = parse(text, 17)
    settings = TuningSettings(prices=Prices("here"), timer=in_order)
    program, choices = tuned(program_of(model, device="cuda"), settings)
    return model, program, choices[-1]


@pytest.mark.parametrize(("fastest", "name"), [*enumerate(["steps", "joined", "given"])])
def test_the_fastest_way_is_taken(monkeypatch: pytest.MonkeyPatch, fastest: int, name: str) -> None:
    seconds = [1.0 if at == fastest else 2.0 for at in range(3)]
    model, program, choice = chosen(monkeypatch, TURNED, *seconds)
    assert choice.chosen == choice.option.name == name
    assert program.is_joined == (name != "steps")
    monkeypatch.setattr(torch, "compile", lambda function, **_options: function)
    feeds = {"x": np.random.default_rng(0).standard_normal((3, 4), np.float32)}
    (wanted,) = law.run(model, feeds, "ort")
    (got,) = loaded(write_source(replace(program, device="cpu")), "cpu")(feeds).values()
    law.compare("y", wanted, got, 2e-6)


def test_a_model_whose_layouts_stay_is_not_compiled_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, choice = chosen(monkeypatch, PLAIN, 2, 2, 1)
    assert list(choice.seconds) == ["steps", "joined", "whole"]


def test_weights_of_windows_are_frozen_and_those_of_products_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, slid, _ = chosen(monkeypatch, SLID, 2, 2, 1)
    assert (slid.is_frozen, slid.is_joined) == (True, False)
    _, plain, _ = chosen(monkeypatch, PLAIN, 2, 2, 1)
    assert (plain.is_frozen, plain.is_joined) == (False, True)


def test_a_model_as_given_keeps_its_transposes(monkeypatch: pytest.MonkeyPatch) -> None:
    _, program, _ = chosen(monkeypatch, TURNED, 2, 2, 1)
    assert write_source(program).text.count(".permute(") == 2
    _, program, _ = chosen(monkeypatch, TURNED, 2, 1, 2)
    assert write_source(program).text.count(".permute(") == 0
