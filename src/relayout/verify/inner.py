"""Tensors inside of two models that have the same name.

Results may hide what is wrong: where all of them are empty, or the same whatever the inputs are. A
name may be kept for a tensor in another order, so what counts is which numbers a tensor holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from relayout.verify.conditioning import of_run
from relayout.verify.difference import TOLERANCES, Tolerance, difference, widened
from relayout.verify.runtimes import ONNX_RUNTIME, ExhaustedError, RefusedError, derived, read
from relayout.verify.verdict import NumericVerdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relayout.verify.cases import Case
    from relayout.verify.interface import Interface
    from relayout.verify.runtimes import Runnable

MOST, FEW = 256, 32
"""How many tensors are looked at, and how many where inputs are large."""
SMALL, LARGE = 1 << 16, 1 << 20
"""Inputs of so many elements cost little, or much memory for what they make inside of a model."""
# Errors of less are judged where they reach the results.
GROSS = Tolerance({name: max(1e-2, usual) for name, usual in TOLERANCES.items()})


@dataclass(frozen=True)
class Inner:
    """Two models that gave equal results in some cases."""

    before: Runnable
    after: Runnable
    interface: Interface
    cases: Sequence[Case]

    def weighed(self, verdict: NumericVerdict) -> NumericVerdict:
        """The verdict, with what tensors inside of the models show."""
        case = min(reversed(self.cases), key=_size)
        if _size(case) > SMALL and not shows_little(verdict):
            return verdict
        models = read(self.before), read(self.after)
        names = _common(*models)
        names = names[:: math.ceil(len(names) / (FEW if _size(case) > LARGE else MOST)) or 1]
        if not names:
            return verdict
        try:
            runs = [
                ONNX_RUNTIME.load(derived(_exposed(model, names), source), self.interface)
                for model, source in zip(models, (self.before, self.after), strict=True)
            ]
            old, new = (run(case.feeds)[-len(names) :] for run in runs)
        except (RefusedError, ExhaustedError):
            return verdict
        nudged = next(of_run(runs[0]).results(case.feeds), case.results)[-len(names) :]
        found = [_differs(*parts) for parts in zip(old, new, nudged, strict=True)]
        elements = verdict.elements + sum(np.size(one) for one in old if not isinstance(one, list))
        different = [name for name, differs in zip(names, found, strict=True) if differs]
        return replace(
            verdict, inner=len(names), elements=elements, inner_different=tuple(different)
        )


def shows_little(verdict: NumericVerdict) -> bool:
    """Whether no output has elements that depend on the inputs."""
    return len({*verdict.steady, *verdict.empty}) == verdict.outputs


def _differs(before: Any, after: Any, nudged: Any) -> bool:
    """Whether two tensors hold other numbers, by more than rounding changes those of the first."""
    if any(not isinstance(one, np.ndarray) or one.dtype.kind in "OU" for one in (before, after)):
        return False
    if before.dtype != after.dtype or before.size != after.size:
        return False
    if difference(before, after, GROSS).excused:
        return False
    old, new, other = (np.sort(one, axis=None) for one in (before, after, nudged))
    return not difference(old, new, GROSS, widened(None, old, other)).excused


def _size(case: Case) -> int:
    return sum(np.size(value) for value in case.feeds.values() if not isinstance(value, list))


def _common(before: onnx.ModelProto, after: onnx.ModelProto) -> list[str]:
    """The tensors of both main graphs, in the order of the first."""
    made = {name for node in after.graph.node for name in node.output}
    outputs = {value.name for value in before.graph.output}
    names = [name for node in before.graph.node for name in node.output if name]
    return [name for name in names if name in made and name not in outputs]


def _exposed(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return model
