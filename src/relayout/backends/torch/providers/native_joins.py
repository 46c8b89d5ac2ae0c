"""Steps of C++ kernels that are done together."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from relayout.backends.torch.providers.native_interface import KernelKind
from relayout.backends.torch.providers.native_steps import Buffer, NativeStep, plain_form

PRODUCTS = frozenset((KernelKind.CONVOLUTION, KernelKind.STRASSEN))


def joined(steps: list[NativeStep], results: list[Buffer]) -> list[NativeStep]:
    """Sums become part of products, and products are done with the convolutions that read them."""
    return _with_depthwise(_with_sums(steps, results), results)


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
    if step.kind != KernelKind.SUM or step.residual is None:
        return None
    for index in range(len(kept) - 1, -1, -1):
        product = kept[index]
        is_wanted = product.result is step.source or product.result is step.residual
        if not (is_wanted and product.can_sum) or product.result in results:
            continue
        if sum(product.result in (other.source, other.residual) for other in steps) == 1:
            return index
    return None


def _with_depthwise(steps: list[NativeStep], results: list[Buffer]) -> list[NativeStep]:
    """Where only a depthwise convolution reads the product before it, both are done at once.

    So is a product that alone reads the convolution. The library takes the steps after for these.
    """
    found = list(steps)
    for index, (product, reader) in enumerate(pairwise(steps)):
        is_pair = product.kind in PRODUCTS and reader.kind == KernelKind.DEPTHWISE
        if is_pair and product.residual is None and _hands_over(product, reader, steps, results):
            after = steps[index + 2] if index + 2 < len(steps) else None
            narrows = after is not None and _is_product_of(after, reader, steps, results)
            weight = (plain_form(product.weight[0]), product.weight[1])
            kind = KernelKind.NARROWED if narrows else KernelKind.WIDENED
            found[index] = replace(product, kind=kind, weight=weight)
    return found


def _is_product_of(
    step: NativeStep, reader: NativeStep, steps: list[NativeStep], results: list[Buffer]
) -> bool:
    is_pointwise = step.kernel == step.strides == (1, 1)
    is_product = step.kind == KernelKind.CONVOLUTION and is_pointwise
    return is_product and _hands_over(reader, step, steps, results)


def _hands_over(
    first: NativeStep, second: NativeStep, steps: list[NativeStep], results: list[Buffer]
) -> bool:
    """Whether the second step reads what the first one writes, and no other step does."""
    readers = [step for step in steps if first.result in (step.source, step.residual)]
    return readers == [second] and second.source is first.result and first.result not in results
