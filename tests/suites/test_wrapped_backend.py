"""Backend tests fed in other orders are still right after optimising, and nothing moves more."""

from __future__ import annotations

import pytest

from relayout.ops.measure import Objective
from tests.suites.backend import Case, case, case_names
from tests.suites.optimising import Optimised, assert_same_interface, moved, optimised
from tests.suites.wrapping import VARIANTS, Variant, wrapped

STRIDE = 7
"""Every how many-th test is tried here; `python -m benchmarks.wrapped` tries them all."""

NODE_TESTS = [name for kind, name in case_names() if kind == "node"]
SAMPLED = [
    (variant, name) for start, variant in enumerate(VARIANTS) for name in NODE_TESTS[start::STRIDE]
]


def wrapped_case(name: str, variant: Variant) -> Case | None:
    """The test in a variant, if it has tensors to wrap and the reference evaluator passes it."""
    found = wrapped(case("node", name), variant)
    return found if found is not None and found.passes() else None


def check_wrapped(found: Case, objective: Objective) -> Optimised:
    result = optimised(found.model, objective)
    assert_same_interface(found.model, result.model)
    found.run(result.model)
    assert moved(result.after, objective) <= moved(result.before, objective)
    return result


@pytest.mark.parametrize(
    ("variant", "name"), SAMPLED, ids=lambda value: getattr(value, "id", value)
)
def test_wrapped_test_is_still_right(variant: Variant, name: str) -> None:
    found = wrapped_case(name, variant)
    if found is None:
        pytest.skip("nothing to wrap, or the reference evaluator does not pass it")
    check_wrapped(found, Objective.BYTES)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.id)
def test_wrapping_makes_work(variant: Variant) -> None:
    """The Transposes of a slice of the tests that are left, of those that were given."""
    cases = [wrapped_case(name, variant) for name in NODE_TESTS[:: 4 * STRIDE]]
    results = [check_wrapped(found, Objective.COUNT) for found in cases if found is not None]
    given = sum(result.before.transposes for result in results)
    left = sum(result.after.transposes for result in results)
    assert given > 100
    assert left < given * 3 / 4, f"{given} -> {left}"
