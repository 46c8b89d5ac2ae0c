"""Steps of C++ kernels that are done together."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from relayout.targets.torch.kernels.native_steps import Buffer, Kind, NativeStep


def joined(steps: list[NativeStep], results: list[Buffer]) -> list[NativeStep]:
    """Sums become part of products, and products are done with the filters that read them."""
    return _with_filters(_with_sums(steps, results), results)


def _with_sums(steps: list[NativeStep], results: list[Buffer]) -> list[NativeStep]:
    """Sums become part of the product that computes one of their operands, if only they read it."""
    kept: list[NativeStep] = []
    for step in steps:
        index = _summand(step, kept, steps, results)
        if index is None:
            kept.append(step)
            continue
        product = kept.pop(index)
        other = step.residual if step.source is product.result else step.source
        if other is None:
            raise ValueError("a sum lacks an operand")
        kept.append(product.with_sum(other, step.result, step.activation))
    return kept


def _summand(
    step: NativeStep, kept: list[NativeStep], steps: list[NativeStep], results: list[Buffer]
) -> int | None:
    if step.kind != Kind.SUM or step.residual is None:
        return None
    for index in range(len(kept) - 1, -1, -1):
        product = kept[index]
        is_wanted = product.result is step.source or product.result is step.residual
        if not (is_wanted and product.can_sum) or product.result in results:
            continue
        if sum(product.result in (other.source, other.residual) for other in steps) == 1:
            return index
    return None


def _with_filters(steps: list[NativeStep], results: list[Buffer]) -> list[NativeStep]:
    """Where a filter per channel alone reads the product before it, both are done at once.

    The library takes the step behind a widened product for its filter.
    """
    found = list(steps)
    for index, (product, reader) in enumerate(pairwise(steps)):
        is_pair = product.kind == Kind.CONVOLUTION and reader.kind == Kind.DEPTHWISE
        if is_pair and product.residual is None and _hands_over(product, reader, steps, results):
            found[index] = replace(product, kind=Kind.WIDENED)
    return found


def _hands_over(
    first: NativeStep, second: NativeStep, steps: list[NativeStep], results: list[Buffer]
) -> bool:
    """Whether the second step reads what the first one writes, and nobody else does."""
    readers = [step for step in steps if first.result in (step.source, step.residual)]
    return readers == [second] and second.source is first.result and first.result not in results
