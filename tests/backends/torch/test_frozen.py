"""On a CPU a whole model is Inductor's where that is faster: with its weights as constants."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch._inductor.config as settings  # noqa: E402

from relayout.backends.torch.choose import frozen  # noqa: E402 - torch may be missing
from relayout.backends.torch.choose.settings import TuningSettings  # noqa: E402
from relayout.backends.torch.choose.tuning import tuned  # noqa: E402
from relayout.backends.torch.compiling import program_of  # noqa: E402
from relayout.backends.torch.modules.loading import compile_program  # noqa: E402
from relayout.backends.torch.program.program import Program  # noqa: E402
from relayout.backends.torch.providers.clock import cpu_clock  # noqa: E402
from relayout.backends.torch.providers.prices import Price, Prices  # noqa: E402
from relayout.backends.torch.runtime.inductor import FrozenForward  # noqa: E402
from tests.rewrite.rewriting import parse  # noqa: E402

MODEL = """
    g (float[LENGTH,4] x) => (float[LENGTH,2] y)
    <float[4,2] w = {1,2,3,4,5,6,7,8}> {
      z = MatMul(x, w)
      y = Relu(z) }"""

KNOWN = MODEL.replace("LENGTH", "3")


def chosen(
    monkeypatch: pytest.MonkeyPatch, text: str, steps: float, frozen_seconds: float
) -> tuple[Program, int]:
    """The program that is chosen, and how often Inductor was tried."""
    tried = []

    def timed(programs: Sequence[Program]) -> list[Price]:
        tried.append(any(each.is_frozen for each in programs))
        return [Price(frozen_seconds if each.is_frozen else steps) for each in programs]

    monkeypatch.setattr(frozen, "_timed", timed)
    program, _ = tuned(program_of(parse(text, 17)), TuningSettings(prices=Prices("here")))
    return program, sum(tried)


def test_the_faster_of_steps_and_inductor_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, KNOWN, 9e-3, 2e-3)[0].is_frozen
    assert not chosen(monkeypatch, KNOWN, 2e-3, 9e-3)[0].is_frozen


def test_nothing_is_compiled_for_less_than_a_millisecond_or_for_open_lengths(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert chosen(monkeypatch, KNOWN, 9e-4, 1e-4)[1] == 0
    assert chosen(monkeypatch, MODEL.replace("LENGTH", "N"), 9e-3, 2e-3)[1] == 0


def test_a_frozen_module_computes_what_its_nodes_do(monkeypatch: pytest.MonkeyPatch) -> None:
    program, _ = chosen(monkeypatch, KNOWN, 9e-3, 2e-3)
    model = compile_program(program)
    x = np.random.default_rng(0).standard_normal((3, 4), np.float32)
    expected = np.maximum(x @ np.arange(1, 9, dtype=np.float32).reshape(4, 2), 0)
    np.testing.assert_allclose(model(x)["y"], expected, rtol=1e-5, atol=1e-5)
    forward = model.forward
    assert not forward.has_failed  # type: ignore[attr-defined]


def test_all_of_inductor_freezes_while_the_first_call_compiles() -> None:
    """Which tensors are constants is decided where options of torch.compile are not known."""
    seen: list[bool] = []

    def forward(_w: object, x: object) -> object:
        seen.append(settings.freezing)
        return x

    frozen_forward = FrozenForward(forward)
    frozen_forward.frozen = lambda w: partial(forward, w)  # type: ignore[method-assign]
    weights = SimpleNamespace(device="cpu")
    assert [frozen_forward(weights, 1), frozen_forward(weights, 2)] == [1, 2]
    assert seen == [True, False]


@pytest.mark.parametrize(("threads", "clock"), [(1, time.thread_time), (2, time.perf_counter)])
def test_kernels_of_one_thread_are_timed_on_its_core(threads: int, clock: object) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert cpu_clock() is clock
    finally:
        torch.set_num_threads(before)
