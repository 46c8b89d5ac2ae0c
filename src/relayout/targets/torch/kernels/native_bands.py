"""Steps in bands of rows, so that what lies between them stays in a near cache."""

from __future__ import annotations

from dataclasses import replace

from relayout.targets.torch.kernels.native_steps import Buffer, Kind, NativeStep

LARGE = 128 * 1024
"""Floats of a tensor that do not stay in the cache of a core until the next step reads them."""

BAND = 64 * 1024
"""Floats of it that a band may have."""


def banded(steps: list[NativeStep], results: list[Buffer]) -> list[NativeStep]:
    """Where a filter per channel reads a large product, both are done band by band.

    Given:  e = convolution(x); d = depthwise(e); p = convolution(d)
    Result: rows 0 to 9 of e, rows 0 to 7 of d and of p, then rows 10 to 17 of e, and so on
    """
    written: list[NativeStep] = []
    index = 0
    while index < len(steps):
        chain = _chain_at(index, steps, results)
        written += _bands(chain) if len(chain) > 1 else chain
        index += len(chain)
    return written


def _chain_at(index: int, steps: list[NativeStep], results: list[Buffer]) -> list[NativeStep]:
    """A product, the filter that alone reads it, and the product that alone reads that."""
    expand = steps[index]
    following = steps[index + 1 : index + 3]
    is_large = expand.result.size > LARGE and expand.result.image[0] == 1
    if not (_is_pointwise(expand) and is_large and following):
        return [expand]
    depthwise = following[0]
    if depthwise.kind != Kind.DEPTHWISE or not _hands_over(expand, depthwise, steps, results):
        return [expand]
    chain = [expand, depthwise]
    if len(following) > 1 and _is_pointwise(following[1]):
        project = following[1]
        chain += [project] if _hands_over(depthwise, project, steps, results) else []
    return chain


def _is_pointwise(step: NativeStep) -> bool:
    is_plain = step.kernel == (1, 1) == step.strides and step.source.operand is None
    return step.kind == Kind.CONVOLUTION and is_plain and _stays_inside(step.residual)


def _stays_inside(buffer: Buffer | None) -> bool:
    return buffer is None or buffer.operand is None


def _hands_over(
    first: NativeStep, second: NativeStep, steps: list[NativeStep], results: list[Buffer]
) -> bool:
    """Whether the second step reads what the first one writes, and nobody else does."""
    readers = [step for step in steps if first.result in (step.source, step.residual)]
    return readers == [second] and second.source is first.result and first.result not in results


def _bands(chain: list[NativeStep]) -> list[NativeStep]:
    expand, depthwise, *projects = chain
    _, height, width, depth = expand.result.image
    stride, lines = depthwise.strides[0], depthwise.result.image[1]
    rows = max(1, BAND // (width * depth * stride))
    written: list[NativeStep] = []
    done = 0
    for first in range(0, lines, rows):
        last = min(lines, first + rows)
        reach = (last - 1) * stride - depthwise.pads[0] + depthwise.kernel[0]
        needed = height if last == lines else min(height, reach)
        if needed > done:
            written.append(replace(expand, rows=(done, needed)))
            done = needed
        written += [replace(step, rows=(first, last)) for step in (depthwise, *projects)]
    return written
