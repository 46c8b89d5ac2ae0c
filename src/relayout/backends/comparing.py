"""Compiled models on drawn inputs, compared with the file that they came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from relayout.verify.cases import Case, CaseFinder
from relayout.verify.conditioning import Conditioning, Rerun, nudged, of_model, of_run
from relayout.verify.decisions import decisive
from relayout.verify.difference import MOST_NOISE, MOST_NOISE_OF_DECISIONS, TOLERANCES
from relayout.verify.interface import Interface, interface_of
from relayout.verify.judge import Judge
from relayout.verify.quantisers import quantisers_of
from relayout.verify.runtimes import (
    EXTENDED,
    ONNX_RUNTIME,
    RUNTIMES,
    Feeds,
    RefusedError,
    Run,
    Runtime,
    read,
)
from relayout.verify.verdict import NumericOptions, NumericVerdict, unknown


def compare_compiled(
    path: Path,
    name: str,
    load: Callable[[], Run],
    options: NumericOptions,
    *,
    fixed: bool = True,
    load_other: Callable[[], Run] | None = None,
) -> NumericVerdict:
    """Whether a compiled model computes what a file states, as far as runs can show.

    The file is run by ONNX Runtime, unoptimised, or else by the reference evaluator. `fixed`: its
    defaults are constants of the compiled model. `load_other` runs it by other kernels: what
    differs between these and the first is rounding. A file with quantisers may also be what ONNX
    Runtime makes of it at its extended level, where sums of bytes are exact: each sum that is
    rounded to the other side is a whole step.
    """
    interface = interface_of(path)
    if fixed:
        interface = interface.without_defaults()
    compiled = Runtime(name, lambda _path, _interface: load())
    refusals = []
    for runtime in RUNTIMES:
        try:
            original = runtime.load(path, interface)
            cases = CaseFinder(original, interface, options, read(path)).find()
            noise = (
                _noise(original, path, interface) if runtime is ONNX_RUNTIME else of_run(original)
            )
            if load_other is not None:
                own = _own_rounding(original, load, load_other)
                noise = replace(noise, ways=(*noise.ways, own))
            judge = Judge(compiled, original, interface, options, noise, TOLERANCES)
            return _judged(judge, path, cases)
        except RefusedError as refusal:
            refusals.append(f"{runtime.name}: {refusal}")
    return unknown("; ".join(refusals))


def _judged(judge: Judge, path: Path, cases: Sequence[Case]) -> NumericVerdict:
    verdict = judge.judge(path, cases)
    if verdict.equal or not quantisers_of(read(path), path.parent):
        return verdict
    on_bytes = _on_bytes(judge, path, cases)
    return on_bytes if on_bytes.equal else verdict


def _on_bytes(judge: Judge, path: Path, cases: Sequence[Case]) -> NumericVerdict:
    """The verdict on the same cases beside what ONNX Runtime computes on bytes."""
    try:
        original = EXTENDED.load(path, judge.interface)
        known = [replace(case, results=original(case.feeds)) for case in cases]
    except RefusedError as refusal:
        return unknown(str(refusal))
    again = Judge(judge.runtime, original, judge.interface, judge.options, None, TOLERANCES)
    return again.judge(path, known)


def _noise(original: Run, path: Path, interface: Interface) -> Conditioning:
    """How much rounding changes what the given model computes."""
    most = MOST_NOISE_OF_DECISIONS if decisive(read(path)) else MOST_NOISE
    return of_model(original, path, interface, most=most)


def _own_rounding(original: Run, load: Callable[[], Run], load_other: Callable[[], Run]) -> Rerun:
    """Rounding on both sides: of the given model, and of two sets of kernels for the other.

    Of the second no more counts than the given model shows by itself: kernels that are wrong differ
    from right ones too.
    """

    def off(feeds: Feeds) -> list[Any]:
        exact, moved = original(feeds), original(nudged(feeds))
        parts = zip(exact, moved, load()(feeds), load_other()(feeds), strict=True)
        return [_rounded(*part) for part in parts]

    return off


def _rounded(exact: Any, moved: Any, one: Any, other: Any) -> Any:
    """A result of nudged inputs, off by what two sets of kernels differ by, within bounds."""
    if np.asarray(exact).dtype != np.float32 or not np.size(exact):
        return moved
    bound = np.nanmax(np.abs(moved - exact))
    return moved + np.clip(one - other, -bound, bound)
