"""Onnx's backend tests, plain and wrapped, on every road: python -m benchmarks.suite_roads [STRIDE]

A road is a target, a strategy for the target onnx, or torch without tuning. Tests count that the
reference evaluator, or ONNX Runtime for operators of its own, passes as they are. Prints how many
give on each road what is expected, how many are refused, and one line for each other one.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import onnx
from onnx.backend.test.runner import Runner

import relayout
from benchmarks.judge.running import ORT, NotRunError, Session
from relayout.assign.strategies.registry import STRATEGIES
from relayout.errors import RelayoutError
from relayout.targets.target import TARGETS
from tests.suites.backend import Case, case, case_names
from tests.suites.wrapping import VARIANTS, wrapped

Road = Callable[[Case], None]


def _optimised(found: Case, **options: str) -> None:
    made = relayout.optimize(found.model, verify=False, **options).model  # type: ignore[arg-type]
    if any(node.domain == "com.microsoft" for node in _nodes(made)):
        _run_by_ort(found, made)
    else:
        found.run(made)


def _nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """All of them, those of bodies and functions too."""
    left = [*model.graph.node, *(node for made in model.functions for node in made.node)]
    while left:
        node = left.pop()
        yield node
        left.extend(inner for attribute in node.attribute for inner in attribute.g.node)


def _run_by_ort(found: Case, made: onnx.ModelProto) -> None:
    """Raises `NotRunError` if it has no kernel for a type; else the results are as expected."""
    session, names = Session.of(made, ORT), [port.name for port in made.graph.input]
    for inputs, outputs in found.data:
        got = session.run(dict(zip(names, inputs, strict=False)))
        Runner.assert_similar_outputs(outputs, got, rtol=found.rtol, atol=found.atol)


def _compiled(found: Case) -> None:
    model = relayout.compile(found.model, tune=False, verify=False)
    names = [port.name for port in found.model.graph.input]
    for inputs, outputs in found.data:
        results = model(dict(zip(names, inputs, strict=False)))
        got = [np.asarray(y) if not isinstance(y, list) else y for y in results.values()]
        Runner.assert_similar_outputs(outputs, got, rtol=found.rtol, atol=found.atol)


def _roads() -> dict[str, Road]:
    targets = {f"target {name}": {"target": name} for name in TARGETS}
    strategies = {f"strategy {name}": {"strategy": name} for name in STRATEGIES}
    roads: dict[str, Road] = {
        name: lambda found, options=options: _optimised(found, **options)  # type: ignore[misc]
        for name, options in {**targets, **strategies}.items()
    }
    return {**roads, "torch": _compiled}


def _cases(stride: int) -> Iterator[tuple[str, Case]]:
    for number, (kind, name) in enumerate(case_names()[::stride]):
        found = case(kind, name)
        if not found.passes():
            continue
        yield "plain", found
        other = wrapped(found, VARIANTS[number % len(VARIANTS)])
        if other is not None and other.passes():
            yield "wrapped", other


def main() -> None:
    warnings.simplefilter("ignore")
    stride = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    roads, counts = _roads(), Counter[tuple[str, str, str]]()
    for form, found in _cases(stride):
        for name, road in roads.items():
            try:
                road(found)
                verdict = "as expected"
            except RelayoutError:
                verdict = "refused"
            except NotRunError:
                verdict = "no kernel in ONNX Runtime"
            except Exception as error:  # noqa: BLE001 - one failure must not hide the next
                verdict = "FAILED"
                text = " ".join(str(error).split())[:200]
                print(f"{form} {found.name}, {name}: {type(error).__name__}: {text}", flush=True)
            counts[name, form, verdict] += 1
    for (name, form, verdict), count in sorted(counts.items()):
        print(f"{name}, {form}: {count} {verdict}")


if __name__ == "__main__":
    main()
