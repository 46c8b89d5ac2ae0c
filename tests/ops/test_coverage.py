"""Every operator of onnx is known by choice, and every rule is tried where its operator changed."""

from __future__ import annotations

from collections import Counter

import onnx.defs
import onnx_ir as ir
import pytest

from relayout.graph.read import NodeView, schema_of
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal
from relayout.ops.registry import FACTS, FAMILIES, rule_of
from relayout.ops.rule import NOTHING_KNOWN
from tests.samples import ALL
from tests.samples.sample import versions

RULES = {key: facts.rule for key, facts in FACTS.items() if facts.rule is not NOTHING_KNOWN}
OLDEST = 7
"""The first opset of the standard domain that is read."""

OPERATORS = sorted(
    {(schema.domain, schema.name) for schema in onnx.defs.get_all_schemas_with_history()}
)
DOMAINS = {domain for domain, _ in OPERATORS}

WITHOUT_KERNEL: dict[tuple[str, str, int], str] = {
    ("", "GlobalLpPool", 22): "onnx's evaluator has no GlobalLpPool, ONNX Runtime one up to 21",
}
"""Versions of an operator that no runtime at hand can run, each with the reason."""


def _oldest(domain: str) -> int:
    return OLDEST if domain == "" else 1


def _since(domain: str, op_type: str, version: int) -> int:
    """The version of an operator's definition in force at an opset version."""
    schema = schema_of(op_type, version, domain)
    assert schema is not None, f"{op_type} is not defined at version {version} of {domain!r}"
    return max(schema.since_version, _oldest(domain))


def _sampled() -> set[tuple[str, str, int]]:
    return {
        (sample.domain, sample.op_type, _since(sample.domain, sample.op_type, sample.version))
        for sample in ALL
        if sample.domain in DOMAINS
    }


def _rules(*, barrier: bool) -> list[tuple[str, str]]:
    return sorted(key for key, rule in RULES.items() if rule.barrier is barrier)


def _names(key: tuple[str, str]) -> str:
    return ".".join(filter(None, key))


@pytest.mark.parametrize("operator", OPERATORS, ids=_names)
def test_an_operator_of_onnx_has_a_rule_or_is_a_barrier_by_choice(
    operator: tuple[str, str],
) -> None:
    assert operator in RULES


@pytest.mark.parametrize("operator", _rules(barrier=True), ids=_names)
def test_a_barrier_has_a_reason(operator: tuple[str, str]) -> None:
    domain, op_type = operator
    view = NodeView(ir.Node(domain, op_type, []), 21)
    rule = rule_of(view)
    for answer in (
        rule.transport(view, Permutation.of(1, 0)),
        rule.pull(view, Permutation.of(1, 0)),
    ):
        assert isinstance(answer, Refusal)
        assert answer.reason
        assert "nothing is known" not in answer.reason


@pytest.mark.parametrize("operator", sorted(FACTS), ids=_names)
def test_facts_name_an_operator_that_exists(operator: tuple[str, str]) -> None:
    domain, _ = operator
    assert operator in OPERATORS or domain not in DOMAINS


def test_no_operator_is_declared_twice() -> None:
    claims: Counter[tuple[str, str]] = Counter()
    for family in FAMILIES:
        claims.update((facts.domain, name) for facts in family.FACTS for name in facts.op_types)
    assert not [key for key, count in claims.items() if count > 1]


@pytest.mark.parametrize("operator", _rules(barrier=False), ids=_names)
def test_a_rule_is_sampled_at_every_version_of_its_operator(operator: tuple[str, str]) -> None:
    domain, op_type = operator
    needed = {(*operator, version) for version in versions(op_type, domain, _oldest(domain))}
    assert sorted(needed - _sampled() - set(WITHOUT_KERNEL)) == []


def test_every_exception_is_needed() -> None:
    assert not _sampled() & set(WITHOUT_KERNEL)
