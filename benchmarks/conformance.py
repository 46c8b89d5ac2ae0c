"""Onnx's backend tests through a backend: python -m benchmarks.conformance [--backend NAME]

Each model is compiled as `relayout.compile` does it, without tuning, and fed with the data of
the test. One line a failed test with the reason, then by operator how many of its node tests pass,
the share and how many of the others were refused before anything ran last.
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


class RefusedCaseError(Exception):
    """A model that is not compiled."""


@dataclass(frozen=True)
class Verdict:
    """What became of one test."""

    name: str
    operator: str
    reason: str = ""
    is_refused: bool = False
    """Whether it was refused before anything ran."""

    @property
    def passed(self) -> bool:
        return not self.reason


def run_case(found: Case, backend: str) -> None:
    """Raise if the compiled model does not give what is expected."""
    try:
        compiled = relayout.compile(found.model, backend=backend, tune=False, verify=False)
    except Exception as error:
        raise RefusedCaseError(_words(error)) from error
    names = [value.name for value in found.model.graph.input]
    for inputs, outputs in found.data:
        feeds = dict(zip(names, inputs, strict=False))
        results = list(compiled(feeds).values())
        for expected, result in zip(outputs, results, strict=True):
            # Onnx's own comparison of sequences takes their tensors for sequences too.
            is_one = not isinstance(expected, list)
            wanted, given = ([expected], [result]) if is_one else (expected, result)
            Runner.assert_similar_outputs(wanted, given, rtol=found.rtol, atol=found.atol)


def _words(error: Exception) -> str:
    kind_of = "" if isinstance(error, RelayoutError) else f"{type(error).__name__}: "
    return kind_of + " ".join(str(error).split())[:160] or type(error).__name__


def judge(kind: str, name: str, backend: str) -> Verdict:
    found = case(kind, name)
    operator = operator_of(found.model)
    try:
        run_case(found, backend)
    except RefusedCaseError as refusal:
        return Verdict(name, operator, str(refusal), is_refused=True)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong, the test has failed
        return Verdict(name, operator, _words(error))
    return Verdict(name, operator)


def operator_of(model: onnx.ModelProto) -> str:
    """The operator that a model is about: its only one, or what is taken apart in it."""
    names = list(dict.fromkeys(node.op_type for node in model.graph.node))
    return names[0] if len(names) == 1 else "several operators"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", metavar="TEXT", help="tests with this in their name")
    parser.add_argument("--kind", choices=KINDS, default="node")
    parser.add_argument("--backend", default="torch")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = [(kind, name) for kind, name in case_names() if kind == options.kind]
    verdicts = [judge(kind, name, options.backend) for kind, name in names if options.only in name]
    for verdict in verdicts:
        if not verdict.passed:
            print(f"{verdict.name}: {verdict.reason}")
    total = Counter(verdict.operator for verdict in verdicts)
    passed = Counter(verdict.operator for verdict in verdicts if verdict.passed)
    for operator in sorted(total):
        print(f"{operator}: {passed[operator]} of {total[operator]}")
    share = sum(passed.values()) / max(1, len(verdicts))
    refused = sum(verdict.is_refused for verdict in verdicts)
    print(
        f"{options.backend}: {sum(passed.values())} of {len(verdicts)} tests pass "
        f"({100 * share:.1f} %), {refused} are refused before anything runs"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
