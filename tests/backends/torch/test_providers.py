"""Providers answer the same four questions, can be switched off, and report why they fail."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import onnx
import pytest

from tests.ops import law

pytest.importorskip("torch")

from relayout.backends.torch.calibration import common_convolution
from relayout.backends.torch.choose.bench import time_candidates
from relayout.backends.torch.choose.choices import Choice
from relayout.backends.torch.choose.notices import KernelWarning
from relayout.backends.torch.choose.plan import Plan
from relayout.backends.torch.choose.settings import TuningSettings
from relayout.backends.torch.choose.tuning import groups_of, tuned
from relayout.backends.torch.compiling import program_of
from relayout.backends.torch.modules.loading import loaded
from relayout.backends.torch.modules.source import write_source
from relayout.backends.torch.program.program import Program
from relayout.backends.torch.program.scope import Scope
from relayout.backends.torch.providers.eager import EagerRun
from relayout.backends.torch.providers.prices import Price, Prices
from relayout.backends.torch.providers.provider import Candidate, Provider
from relayout.backends.torch.providers.registry import (
    EAGER_PROVIDER,
    PROVIDERS,
    SETTING,
    enabled_providers,
    providers_named,
)
from relayout.backends.torch.providers.site import Site
from relayout.backends.torch.providers.work import GroupWork, RunWork, Work
from relayout.errors import RelayoutError

SHAPE = (8, 8, 12, 3, 1, 1)


def small_convolution() -> onnx.ModelProto:
    return common_convolution(SHAPE)


def choices_with(providers: Sequence[Provider]) -> tuple[Program, list[Choice]]:
    settings = TuningSettings(tuple(providers), prices=Prices("made up"))
    return tuned(program_of(small_convolution()), settings)


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_a_refusal_has_a_reason_and_all_else_is_built(provider: Provider) -> None:
    program = program_of(small_convolution())
    plan = Plan.of(program, groups_of(program.model), TuningSettings(()))
    (group,) = [part.fused for part in plan.parts if part.fused is not None]
    for device in ("cpu", "cuda"):
        site = Site(device, program.precision, program.model.graph.opset_imports)
        for work in (GroupWork.of(group), RunWork.of(group.nodes)):
            refusal = provider.refusal(work, site)
            built = [] if refusal else provider.build(work, site)
            assert bool(refusal) != bool(built)
            words = [provider.describe(each) for each in built]
            assert all(words)
            assert len(set(words)) == len({each.name for each in built})


@pytest.mark.parametrize("names", [[], ["library"], ["native"], ["library", "native"]])
def test_what_is_switched_off_is_not_used(names: list[str]) -> None:
    program, choices = choices_with(providers_named(names))
    used = {option.provider for choice in choices for option in choice.options}
    assert used <= {*names, EAGER_PROVIDER.name}
    model = small_convolution()
    feeds = {"x": np.random.default_rng(3).standard_normal((1, 8, 12, 12), np.float32)}
    (wanted,) = law.run(model, feeds, "ort")
    law.compare("y", wanted, loaded(write_source(program), "cpu")(feeds)["y"], 2e-5)


def test_the_environment_names_the_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SETTING, raising=False)
    assert enabled_providers() == PROVIDERS
    monkeypatch.setenv(SETTING, "library, inductor")
    names = [provider.name for provider in enabled_providers()]
    assert names == ["library", EAGER_PROVIDER.name, "inductor"]
    monkeypatch.setenv(SETTING, "")
    assert enabled_providers() == (EAGER_PROVIDER,)
    monkeypatch.setenv(SETTING, "libary")
    with pytest.raises(RelayoutError, match="unknown provider 'libary'"):
        enabled_providers()


class Unable:
    """A kernel that the device does not have."""

    name = "unable"

    def write(self, _nodes: object, _scope: Scope) -> None:
        raise RuntimeError("no such kernel\nand a long story")


class FailingProvider(Provider):
    """Offers kernels that fail, or reports that it cannot be used at all."""

    name = "failing"

    def __init__(self, broken: str | None = None) -> None:
        self.broken = broken

    def refusal(self, work: Work, _site: Site) -> str | None:
        return None if isinstance(work, RunWork) else "only runs"

    def build(self, _work: Work, _site: Site) -> Sequence[Candidate]:
        return [Unable()]

    def describe(self, _candidate: Candidate) -> str:
        return "a kernel that fails"

    def fault(self, _site: Site) -> str | None:
        return self.broken


TWICE = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[2,8,5,5] x, int64 axis) => (float[2,8,5,5] y)
{ a = Sigmoid(x) b = Tanh(a) m = CumSum(b, axis) d = Tanh(m) y = Sigmoid(d) }
"""


def test_a_kernel_that_fails_is_reported_once_with_its_reason() -> None:
    prices = Prices("made up")
    settings = TuningSettings((EAGER_PROVIDER, FailingProvider()), quiet, prices)
    with pytest.warns(KernelWarning) as caught:
        _, choices = tuned(program_of(onnx.parser.parse_model(TWICE)), settings)
    (text,) = [str(each.message) for each in caught]
    assert text.startswith("failing (a kernel that fails) cannot run Sigmoid, Tanh [2, 8, 5, 5]")
    assert text.endswith(": no such kernel")
    assert [choice.chosen for choice in choices] == [EagerRun().name] * 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what is known to fail is not tried again
        tuned(program_of(onnx.parser.parse_model(TWICE)), settings)


def quiet(work: Work, candidates: Sequence[Candidate], site: Site) -> list[Price]:
    timed = time_candidates(work, candidates, site)
    return [Price(price.seconds, reason=price.reason) for price in timed]


def test_a_provider_that_cannot_be_used_is_reported_and_left_out() -> None:
    broken = FailingProvider("its compiler is missing")
    settings = TuningSettings((EAGER_PROVIDER, broken), quiet, Prices("made up"))
    with pytest.warns(KernelWarning, match="no kernels of failing: its compiler is missing"):
        _, choices = tuned(program_of(onnx.parser.parse_model(TWICE)), settings)
    assert not choices


def test_noise_is_reported() -> None:
    def noisy(_work: Work, candidates: Sequence[Candidate], _site: Site) -> list[Price]:
        return [Price(1.0, spread=0.5) for _ in candidates]

    settings = TuningSettings(providers_named(["library"]), noisy, Prices("made up"))
    with pytest.warns(KernelWarning, match="the machine is busy"):
        tuned(program_of(small_convolution()), settings)
