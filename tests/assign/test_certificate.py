from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from relayout.assign.bound import bound_of, cost_of
from relayout.assign.certificate import verify
from relayout.assign.component import Branch, Leaf, Persistent, Proof
from relayout.assign.encoding import certificate, decode
from relayout.assign.problem import LayoutProblem, Operator, Value, Variant
from relayout.assign.questions import UnsoundError
from relayout.assign.strategies.exact import solve
from tests.assign.random_problems import Shape, random_problem

Certificate = dict[str, Any]

SHAPES = (
    Shape(labels=True, variants=2, orders=2, operators=10),
    Shape(orders=4, paired=0.6),
    Shape(labels=True, variants=3, orders=3, operators=10),
)


def certified() -> Iterator[tuple[LayoutProblem, Certificate]]:
    """Problems with certificates that hold, as read back from a file."""
    for seed in range(150):
        problem = random_problem(Random(seed), SHAPES[seed % len(SHAPES)])
        yield problem, json.loads(json.dumps(certificate(solve(problem))))


CERTIFIED = list(certified())


def lower_the_cost(data: Certificate) -> bool:
    part = next((part for part in data["components"] if part["cost"]), None)
    if part is None:
        return False
    for each in (part, data):
        each["cost"] -= 1
        each["bound"] -= 1
    return True


def raise_the_bound(data: Certificate) -> bool:
    for each in (data["components"][-1], data):
        each["bound"] += 1
    return True


def raise_cost_and_bound(data: Certificate) -> bool:
    for each in (data["components"][-1], data):
        each["bound"] += 1
        each["cost"] += 1
    return True


def raise_a_price(data: Certificate) -> bool:
    operator = data["components"][-1]["operators"][-1]
    operator["options"][operator["chosen"]][1] += 1
    return True


def change_a_copy_price(data: Certificate) -> bool:
    for part in data["components"]:
        for value in part["values"]:
            if isinstance(value["copy_price"], int):
                value["copy_price"] += 1
                return True
    return False


def drop_a_component(data: Certificate) -> bool:
    part = data["components"].pop()
    data["cost"] -= part["cost"]
    data["bound"] -= part["bound"]
    return True


def drop_an_option(data: Certificate) -> bool:
    for part in data["components"]:
        for operator in part["operators"]:
            if len(operator["options"]) > 1 and operator["chosen"] == 0:
                operator["options"].pop()
                return True
    return False


def repeat_a_component(data: Certificate) -> bool:
    part = data["components"][-1]
    data["components"].append(deepcopy(part))
    data["cost"] += part["cost"]
    data["bound"] += part["bound"]
    return True


def offer_more_than_the_price(data: Certificate) -> bool:
    for part in data["components"]:
        if part["proof"].get("offers"):
            value, offers = part["proof"]["offers"][0]
            stored = part["values"][value]["copy_price"]
            if isinstance(stored, int):
                offers[0][2] += (stored + 1) * part["proof"]["scale"]
                return True
    return False


def forget_the_offers(data: Certificate) -> bool:
    for part in data["components"]:
        proof = part["proof"]
        if part["kind"] == "flow" and any(
            amount for _, rows in proof["offers"] for *_, amount in rows
        ):
            proof["offers"] = []
            return True
    return False


def write_a_float(data: Certificate) -> bool:
    data["components"][0]["cost"] = float(data["components"][0]["cost"])
    return True


def lose_the_home(data: Certificate) -> bool:
    data["components"][-1]["operators"][-1]["home"] ^= True
    return True


FORGERIES: tuple[Callable[[Certificate], bool], ...] = (
    lower_the_cost,
    raise_the_bound,
    raise_cost_and_bound,
    raise_a_price,
    change_a_copy_price,
    drop_a_component,
    drop_an_option,
    repeat_a_component,
    offer_more_than_the_price,
    forget_the_offers,
    write_a_float,
    lose_the_home,
)


def test_certificates_survive_a_file() -> None:
    assert all(verify(data, problem) == [] for problem, data in CERTIFIED)
    assert all(verify(data) == [] for _, data in CERTIFIED)


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_a_forged_certificate_is_refused(forge: Callable[[Certificate], bool]) -> None:
    forged = 0
    for problem, data in CERTIFIED:
        copy = deepcopy(data)
        if forge(copy):
            assert verify(copy, problem), copy
            forged += 1
    assert forged >= 10


def test_another_choice_is_refused_unless_it_costs_the_same() -> None:
    refused = 0
    for _, data in CERTIFIED:
        for part in deepcopy(data)["components"]:
            for operator in part["operators"]:
                operator["chosen"] = len(operator["options"]) - 1 - operator["chosen"]
            decided = decode(part)
            faults = verify({**part, "components": [part]})
            assert bool(faults) == (cost_of(decided.component, decided.chosen) != part["cost"])
            refused += bool(faults)
    assert refused >= 50


def tampered(proof: Proof, random: Random) -> Proof:
    """The same proof with some amounts a little larger or smaller."""
    if isinstance(proof, Branch):
        return proof._replace(cases=tuple((o, tampered(p, random)) for o, p in proof.cases))
    if isinstance(proof, Persistent):
        steps = [step._replace(proof=tampered(step.proof, random)) for step in proof.steps]
        parts = [part._replace(proof=tampered(part.proof, random)) for part in proof.parts]
        return Persistent(tuple(steps), tuple(parts))

    def changed(rows: Sequence[tuple[int, ...]]) -> Any:
        steps = [random.choice((0, 0, 1, -1, 2)) * proof.scale for _ in rows]
        return tuple((*row[:-1], row[-1] + step) for row, step in zip(rows, steps, strict=True))

    offers = {value: changed(rows) for value, rows in proof.offers.items()}
    return Leaf(proof.scale, offers, {value: changed(r) for value, r in proof.shares.items()})


def test_no_multipliers_prove_more_than_is_true() -> None:
    random = Random(3)
    unsound = weaker = 0
    for _, data in CERTIFIED * 3:
        for part in map(decode, data["components"]):
            try:
                bound = bound_of(part.component, tampered(part.proof, random))
            except UnsoundError:
                unsound += 1
                continue
            assert bound <= part.cost
            weaker += bound < part.cost
    assert unsound >= 100
    assert weaker >= 30


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in JSON data, as a container and a key or index."""
    if isinstance(data, dict | list):
        for key in data if isinstance(data, dict) else range(len(data)):
            yield data, key
            yield from places(data[key])


def test_whatever_is_changed_only_the_truth_is_accepted() -> None:
    random = Random(4)
    refused = 0
    for problem, data in CERTIFIED * 10:
        copy = deepcopy(data)
        container, key = random.choice(list(places(copy)))
        container[key] = random.choice((-1, 0, 1, 2, 99, None, [], {}, True, "x"))
        faults = verify(copy, problem)
        refused += bool(faults)
        assert faults or copy["bound"] <= copy["cost"] == data["cost"]
    assert refused >= 1000


def test_a_step_must_prove_what_it_fixes() -> None:
    refused = 0
    for _, data in CERTIFIED:
        for part in map(decode, data["components"]):
            if not isinstance(part.proof, Persistent):
                continue
            step, *later = part.proof.steps
            fewer = step._replace(members=step.members[1:])
            for forged in (step._replace(ports=step.ports[1:]), fewer):
                with pytest.raises(UnsoundError):
                    bound_of(part.component, part.proof._replace(steps=(forged, *later)))
                refused += 1
    assert refused >= 20


def test_cases_must_leave_out_no_option() -> None:
    part = next(part for part in solve(diamond()).parts if part.kind == "flow")
    free = next(i for i, m in enumerate(part.component.members) if len(m.options) == 2)
    both = Branch(free, (((0,), part.proof), ((1,), part.proof)))
    assert bound_of(part.component, both) == part.cost
    for cases in ((((0,), part.proof),), (((1,), part.proof),), ()):
        with pytest.raises(UnsoundError):
            bound_of(part.component, Branch(free, cases))


def test_a_certificate_holds_for_its_own_problem_only() -> None:
    others = [problem for problem, _ in CERTIFIED[1:]]
    for (problem, data), other in zip(CERTIFIED, others, strict=False):
        if problem != other:
            assert verify(data, other)


def diamond() -> LayoutProblem:
    """Two readers at one order and the producer at the other: one copy, whatever is chosen."""
    values = tuple(Value(f"v{i}", ("a", "b"), 5) for i in range(2))
    source = Operator("x", (), (0,), (Variant((), (0,)),))
    either = Operator("relu", (0,), (1,), tuple(Variant((o,), (o,)) for o in (0, 1)))
    sinks = [Operator(f"y{i}", (1,), (), (Variant((1,), ()),)) for i in range(2)]
    return LayoutProblem((source, either, *sinks), values)


def test_a_worse_choice_is_not_proved_by_the_proof_of_a_better_one() -> None:
    problem = diamond()
    data = certificate(solve(problem))
    assert data["cost"] == 5
    part = next(part for part in data["components"] if part["kind"] == "flow")
    part["operators"][0]["options"][0][1] += 1
    assert verify(data, problem)


@pytest.mark.parametrize("data", [{}, {"components": [{}]}, {"components": 3, "cost": 0}])
def test_what_is_not_a_certificate_is_refused(data: Certificate) -> None:
    assert verify(data)
