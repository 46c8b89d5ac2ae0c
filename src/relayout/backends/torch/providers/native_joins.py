"""Steps of C++ kernels that are done together."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from relayout.backends.torch.providers.native_steps import (
    Buffer,
    NativeKind,
    NativeStep,
    plain_form,
)

PRODUCTS = frozenset((NativeKind.CONVOLUTION, NativeKind.STRASSEN))


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
    if step.kind != NativeKind.SUM or step.residual is None:
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

    So is a product that alone reads the filter. The library takes the steps behind for these.
    """
    found = list(steps)
    for index, (product, reader) in enumerate(pairwise(steps)):
        is_pair = product.kind in PRODUCTS and reader.kind == NativeKind.DEPTHWISE
        if is_pair and product.residual is None and _hands_over(product, reader, steps, results):
            behind = steps[index + 2] if index + 2 < len(steps) else None
            narrows = behind is not None and _is_product_of(behind, reader, steps, results)
            weight = (plain_form(product.weight[0]), product.weight[1])
            kind = NativeKind.NARROWED if narrows else NativeKind.WIDENED
            found[index] = replace(product, kind=kind, weight=weight)
    return found


def _is_product_of(
    step: NativeStep, reader: NativeStep, steps: list[NativeStep], results: list[Buffer]
) -> bool:
    is_pointwise = step.kernel == step.strides == (1, 1)
    is_product = step.kind == NativeKind.CONVOLUTION and is_pointwise
    return is_product and _hands_over(reader, step, steps, results)


def _hands_over(
    first: NativeStep, second: NativeStep, steps: list[NativeStep], results: list[Buffer]
) -> bool:
    """Whether the second step reads what the first one writes, and nobody else does."""
    readers = [step for step in steps if first.result in (step.source, step.residual)]
    return readers == [second] and second.source is first.result and first.result not in results
