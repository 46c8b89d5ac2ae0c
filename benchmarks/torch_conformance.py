"""Onnx's backend tests through torch: python -m benchmarks.torch_conformance [--only TEXT]

Each test's model is lowered as `relayout.compile` does it, without tuning, and fed with the data of
the test. One line a failed test with the reason, then by operator how many of its node tests pass,
the share last.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from dataclasses import dataclass

import onnx
from onnx.backend.test.runner import Runner

import relayout
from relayout.errors import RelayoutError
from tests.suites.backend import Case, case, case_names

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


@dataclass(frozen=True)
class Verdict:
    """What became of one test."""

    name: str
    operator: str
    reason: str = ""

    @property
    def passed(self) -> bool:
        return not self.reason


def run_case(found: Case) -> None:
    """Raise if the compiled model does not give what is expected."""
    compiled = relayout.compile(found.model, tune=False, verify=False)
    names = [value.name for value in found.model.graph.input]
    for inputs, outputs in found.data:
        feeds = dict(zip(names, inputs, strict=False))
        results = list(compiled(feeds).values())
        Runner.assert_similar_outputs(outputs, results, rtol=found.rtol, atol=found.atol)


def judge(kind: str, name: str) -> Verdict:
    found = case(kind, name)
    operator = operator_of(found.model)
    try:
        run_case(found)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong, the test has failed
        text = " ".join(str(error).split())[:160]
        kind_of = "" if isinstance(error, RelayoutError) else f"{type(error).__name__}: "
        return Verdict(name, operator, kind_of + text or type(error).__name__)
    return Verdict(name, operator)


def operator_of(model: onnx.ModelProto) -> str:
    """The operator that a model is about: its only one, or what is taken apart in it."""
    names = list(dict.fromkeys(node.op_type for node in model.graph.node))
    return names[0] if len(names) == 1 else "several operators"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", metavar="TEXT", help="tests with this in their name")
    parser.add_argument("--kind", choices=KINDS, default="node")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = [(kind, name) for kind, name in case_names() if kind == options.kind]
    verdicts = [judge(kind, name) for kind, name in names if options.only in name]
    for verdict in verdicts:
        if not verdict.passed:
            print(f"{verdict.name}: {verdict.reason}")
    total = Counter(verdict.operator for verdict in verdicts)
    passed = Counter(verdict.operator for verdict in verdicts if verdict.passed)
    for operator in sorted(total):
        print(f"{operator}: {passed[operator]} of {total[operator]}")
    share = sum(passed.values()) / max(1, len(verdicts))
    print(f"{sum(passed.values())} of {len(verdicts)} tests pass ({100 * share:.1f} %)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
