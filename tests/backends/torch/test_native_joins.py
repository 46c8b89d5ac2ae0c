"""Which steps of C++ kernels are done together."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from relayout.backends.torch.providers.native_interface import KernelKind
from relayout.backends.torch.providers.native_joins import joined
from relayout.backends.torch.providers.native_steps import (
    Buffer,
    NativeStep,
    placed,
)

WIDE = (1, 28, 28, 192)


def block(first: KernelKind, form: str, last: KernelKind) -> list[NativeStep]:
    """A product, a depthwise convolution that reads it, and a product that reads that."""
    source, wide, filtered = Buffer((1, 28, 28, 32), 0), Buffer(WIDE), Buffer(WIDE)
    return [
        NativeStep(first, source, wide, (form, "m"), "b"),
        NativeStep(KernelKind.DEPTHWISE, wide, filtered, ("depthwise", "f"), "b", kernel=(3, 3)),
        NativeStep(last, filtered, Buffer((1, 28, 28, 32)), ("filters", "n"), "o"),
    ]


def kinds(steps: list[NativeStep]) -> list[KernelKind]:
    return [step.kind for step in joined(steps, [steps[-1].result])]


def test_a_depthwise_convolution_is_done_with_the_products_around_it() -> None:
    steps = block(KernelKind.CONVOLUTION, "filters", KernelKind.CONVOLUTION)
    assert kinds(steps) == [KernelKind.NARROWED, KernelKind.DEPTHWISE, KernelKind.CONVOLUTION]


def test_a_product_by_quarters_before_a_depthwise_convolution_stays_as_it_is() -> None:
    steps = block(KernelKind.STRASSEN, "strassen filters", KernelKind.CONVOLUTION)
    first = joined(steps, [steps[-1].result])[0]
    assert (first.kind, first.weight) == (KernelKind.NARROWED, ("filters", "m"))


def test_a_product_by_quarters_after_a_depthwise_convolution_stays() -> None:
    steps = block(KernelKind.CONVOLUTION, "filters", KernelKind.STRASSEN)
    assert kinds(steps) == [KernelKind.WIDENED, KernelKind.DEPTHWISE, KernelKind.STRASSEN]


def test_a_depthwise_convolution_that_others_read_is_stored() -> None:
    steps = block(KernelKind.CONVOLUTION, "filters", KernelKind.CONVOLUTION)
    steps.append(NativeStep(KernelKind.SUM, steps[1].result, Buffer(WIDE)))
    assert kinds(steps) == [
        KernelKind.WIDENED,
        KernelKind.DEPTHWISE,
        KernelKind.CONVOLUTION,
        KernelKind.SUM,
    ]


def test_what_the_first_product_reads_lies_apart_from_what_the_last_one_writes() -> None:
    given, read = Buffer((1, 28, 28, 32), 0), Buffer((1, 28, 28, 32))
    first, *others = block(KernelKind.NARROWED, "filters", KernelKind.CONVOLUTION)
    before = NativeStep(KernelKind.SUM, given, read)
    product = NativeStep(first.kind, read, first.result, first.weight, first.bias)
    places, _ = placed([before, product, *others], [others[-1].result])
    begin, end = places[read], places[read] + read.size
    written = others[-1].result
    assert places[written] >= end or places[written] + written.size <= begin
