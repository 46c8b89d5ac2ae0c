"""Compares two model files by running both on the same inputs."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from relayout.verify.bindings import open_dims
from relayout.verify.cases import CaseFinder
from relayout.verify.comparison import Comparison
from relayout.verify.inner import Inner, shows_little
from relayout.verify.inputs import undrawable
from relayout.verify.interface import (
    Interface,
    UnreadableModelError,
    interface_change,
    interface_of,
)
from relayout.verify.messages import release
from relayout.verify.runtimes import (
    ONNX_RUNTIME,
    RUNTIMES,
    ExhaustedError,
    RefusedError,
    seen,
)
from relayout.verify.verdict import NOTHING, NumericOptions, NumericVerdict, unknown

if TYPE_CHECKING:
    from pathlib import Path

    from relayout.verify.proof.verdict import ModelProof
    from relayout.verify.runtimes import Runnable


def compare(before: Path, after: Path, options: NumericOptions | None = None) -> NumericVerdict:
    """Whether the second model computes what the first one does, as far as runs can show."""
    try:
        return examine(before, after, options or NumericOptions())
    except ExhaustedError as error:
        return unknown(f"the runtime ran out of memory: {error}")


class Extent(Enum):
    """How much of two models is compared, given what is proved of them."""

    ALL = "all lengths and draws, each way through control flow, tensors inside"
    OUTPUTS = "the outputs, at all lengths and draws"
    ONCE = "the outputs, in one run"

    @classmethod
    def of(cls, proof: ModelProof) -> Extent:
        if not proof.holds or proof.conditions:
            return cls.ALL
        return cls.ONCE if proof.identical else cls.OUTPUTS


def examine(
    before: Path, after: Path, options: NumericOptions, extent: Extent = Extent.ALL
) -> NumericVerdict:
    """As `compare`, but running out of memory raises: the caller knows how much there was."""
    try:
        given, made = interface_of(before), interface_of(after)
    except UnreadableModelError as error:
        return unknown(str(error))
    if options.fix_defaults:
        given = given.without_defaults()
    change = interface_change(given, made)
    if change:
        return NumericVerdict("differs", reason=change)
    obstacle = _obstacle(given, options)
    if obstacle:
        return unknown(obstacle)
    # Mostly it is only run from here on, which takes its weights into memory once more.
    release(after)
    return _first_verdict(before, after, given, options, extent)


def _obstacle(interface: Interface, options: NumericOptions) -> str:
    """Why no inputs can be made as asked, or nothing."""
    for port in interface.required:
        if undrawable(port):
            return f"no values can be drawn for input '{port.name}', which is of kind {port.kind}"
    dims = [dim.name for dim in open_dims(interface.required)]
    strange = [f"dimension '{name}'" for name in options.dims if name not in dims]
    inputs = [port.name for port in (*interface.required, *interface.optional)]
    named = [*options.shapes, *options.integer_ranges, *options.fixed]
    strange += [f"input '{name}'" for name in named if name not in inputs]
    return f"the model has no {strange[0]}" if strange else ""


def _first_verdict(
    before: Path, after: Path, interface: Interface, options: NumericOptions, extent: Extent
) -> NumericVerdict:
    """The verdict of the first runtime that can run the first model."""
    refusals = []
    for runtime in RUNTIMES:
        try:
            return _judged(Comparison(runtime, interface, options), before, after, extent)
        except RefusedError as refusal:
            refusals.append(f"{runtime.name}: {refusal}")
    return unknown("; ".join(refusals))


def _judged(
    comparison: Comparison, before: Runnable, after: Runnable, extent: Extent
) -> NumericVerdict:
    """The verdict of a runtime on what inputs show, then on what they do not show by themselves."""
    runtime, interface, options = comparison.runtime, comparison.interface, comparison.options
    original = runtime.load(before, interface)
    once = extent is Extent.ONCE
    cases = CaseFinder(original, interface, options, seen(before), once=once).find()
    verdict = comparison.verdict(original, before, after, cases)
    is_empty = verdict.reason == NOTHING
    enough = extent is not Extent.ALL or runtime is not ONNX_RUNTIME
    if enough or not (verdict.equal or is_empty):
        return verdict
    verdict = comparison.on_all_ways(before, after, cases, verdict)
    if verdict.status == "differs" or verdict.rounding or verdict.replayed or verdict.unstable:
        return verdict
    return _with_inner(Inner(before, after, interface, cases).weighed(verdict))


def _with_inner(verdict: NumericVerdict) -> NumericVerdict:
    """What tensors inside of the models make of a verdict whose results show little."""
    if not shows_little(verdict):
        return verdict
    if verdict.inner_different:
        name = verdict.inner_different[0]
        reason = (
            f"no output depends on the inputs, but tensor '{name}' inside of the models differs"
        )
        return replace(verdict, status="differs", reason=reason)
    if verdict.reason == NOTHING and verdict.elements:
        return replace(verdict, status="equal", reason="")
    return verdict
