"""Tensors are stored in the orders for which all steps together take least time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest

from tests.assign.random_problems import brute_force, cost_of
from tests.backends.torch.random_groups import random_model
from tests.ops import law

torch = pytest.importorskip("torch")

from relayout.assign.strategies.exact import solve  # noqa: E402
from relayout.backends.torch.choose.memory_format import MemoryFormatProblem, with_memory_formats  # noqa: E402
from relayout.backends.torch.choose.plan import Plan  # noqa: E402
from relayout.backends.torch.choose.settings import TuningSettings  # noqa: E402
from relayout.backends.torch.choose.tuning import groups_of, tuned  # noqa: E402
from relayout.backends.torch.compiling import program_of  # noqa: E402
from relayout.backends.torch.modules.loading import loaded  # noqa: E402
from relayout.backends.torch.modules.source import write_source  # noqa: E402
from relayout.backends.torch.program.program import Program, ProgramStep  # noqa: E402
from relayout.backends.torch.providers.conv_form import ConvForm  # noqa: E402
from relayout.backends.torch.providers.orders import LAST, EagerInOrder  # noqa: E402
from relayout.backends.torch.providers.prices import Price, Prices  # noqa: E402
from relayout.backends.torch.providers.provider import Candidate  # noqa: E402
from relayout.backends.torch.providers.registry import providers_named  # noqa: E402
from relayout.backends.torch.providers.site import Site  # noqa: E402
from relayout.backends.torch.providers.work import Work  # noqa: E402

HEAD = '<ir_version: 10, opset_import: ["" : 20]>'
MICRO = 1e-6
DEPTH = 8


def weights(**groups: int) -> list[onnx.TensorProto]:
    source = np.random.default_rng(5)
    return [
        onnx.numpy_helper.from_array(
            source.standard_normal((DEPTH, DEPTH // count, 3, 3), np.float32), name
        )
        for name, count in groups.items()
    ]


def model_of(body: str, **groups: int) -> onnx.ModelProto:
    text = f"{HEAD} g (float[1,{DEPTH},6,6] x) => (float[1,{DEPTH},6,6] y) {{ {body} }}"
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(weights(**groups))
    return model


def conv(result: str, source: str, weight: str, groups: int = 1) -> str:
    return f"{result} = Conv <pads = [1,1,1,1], group = {groups}> ({source}, {weight})"


def priced(price: Callable[[str, str], float]) -> TuningSettings:
    """Settings with prices made up: by group and candidate, in millionths of a second."""

    def timer(work: Work, candidates: Sequence[Candidate], site: Site) -> list[Price]:
        micros = [price(work.key(site), candidate.name) for candidate in candidates]
        return [Price(MICRO * each, reason="made up") for each in micros]

    return TuningSettings(WITHOUT_NATIVE, timer, Prices("made up"))


WITHOUT_NATIVE = providers_named(["library", "inductor"])


def by_name(prices: Mapping[str, float], copy: float) -> Callable[[str, str], float]:
    return lambda key, name: copy if key.startswith("copy") else prices.get(name, 90)


def routes(program: Program) -> list[str]:
    """The orders that each convolution reads and writes."""
    return [
        f"{step.realisation.reads} {step.realisation.writes}"
        for step in program.steps
        if isinstance(step.realisation, ConvForm)
    ]


def assert_same(model: onnx.ModelProto, program: Program, feeds: Mapping[str, Any]) -> str:
    source = write_source(program)
    outputs = loaded(source, "cpu")(dict(feeds))
    for wanted, (name, got) in zip(
        law.run(model, dict(feeds), "ort"), outputs.items(), strict=True
    ):
        law.compare(name, wanted, got, 1e-4)
    return source.text


FEEDS = {"x": np.random.default_rng(3).standard_normal((1, DEPTH, 6, 6), np.float32)}
CHAIN = f"{conv('a', 'x', 'v')} b = Relu(a) {conv('c', 'b', 'w')} y = Tanh(c)"


def test_times_that_are_alike_leave_all_channels_last() -> None:
    prices = {"onednn": 10.0, "plain": 10.0, "plain first": 9.8, "onednn first to last": 12.0}
    model = model_of(CHAIN, v=1, w=1)
    program, _ = tuned(program_of(model), priced(by_name(prices, copy=0.5)))
    assert routes(program) == ["last last", "last last"]
    forward = assert_same(model, program, FEEDS).split("def forward")[1]
    assert forward.count(".contiguous(") == forward.count("channels_last = x.contiguous(") == 1


def test_convolutions_that_are_faster_channels_first_stay_so() -> None:
    prices = {"onednn": 10.0, "plain": 10.0, "plain first": 5.0}
    model = model_of(CHAIN, v=1, w=1)
    program, choices = tuned(program_of(model), priced(by_name(prices, copy=1)))
    assert routes(program) == ["first first", "first first"]
    assert [choice.chosen for choice in choices] == ["plain first", "plain first"]
    assert all(choice.seconds["plain first"] == 5 * MICRO for choice in choices)
    forward = assert_same(model, program, FEEDS).split("def forward")[1]
    assert "contiguous" not in forward


def grouped_first(key: str, name: str) -> float:
    """Depthwise convolutions are faster channels first, all else is faster channels last."""
    if key.startswith("copy"):
        return 2
    if name.endswith("first to last"):
        return 30
    is_grouped = f" g{DEPTH} " in key
    return 10 if is_grouped == name.endswith("first") else 20


MIXED = (
    f"{conv('a', 'x', 'v')} b = Relu(a) {conv('c', 'b', 'd', DEPTH)} e = Relu(c) "
    f"{conv('f', 'e', 'w')} y = Tanh(f)"
)


def test_only_the_convolution_that_gains_is_copied_for() -> None:
    model = model_of(MIXED, v=1, d=DEPTH, w=1)
    program, choices = tuned(program_of(model), priced(grouped_first))
    assert routes(program) == ["last last", "first first", "last last"]
    copies = [choice for choice in choices if choice.group.startswith("copy ")]
    assert [choice.seconds for choice in copies] == [{"to last": 2 * MICRO, "to first": 2 * MICRO}]
    forward = assert_same(model, program, FEEDS).split("def forward")[1]
    assert forward.count(".contiguous()") == 1
    assert forward.count(".contiguous(memory_format=torch.channels_last)") == 2


def test_a_copy_that_costs_more_than_it_saves_is_not_made() -> None:
    model = model_of(MIXED, v=1, d=DEPTH, w=1)

    def dear(key: str, name: str) -> float:
        return 8 if key.startswith("copy") else grouped_first(key, name)

    program, _ = tuned(program_of(model), priced(dear))
    assert routes(program) == ["last last"] * 3


def test_one_copy_serves_all_that_want_it() -> None:
    body = f"{conv('a', 'x', 'v')} {conv('b', 'x', 'w')} c = Tanh(a) d = Tanh(b) y = Mul(c, d)"
    model = model_of(body, v=1, w=1)
    prices = {"onednn": 10.0, "plain": 10.0}
    program, _ = tuned(program_of(model), priced(by_name(prices, copy=1)))
    forward = assert_same(model, program, FEEDS).split("def forward")[1]
    assert forward.count(".contiguous(") == 1


@pytest.mark.parametrize(
    "broken", [("plain first",), ("plain", "onednn"), ("plain", "plain first")]
)
def test_what_cannot_run_is_not_taken(broken: tuple[str, ...]) -> None:
    model = model_of(CHAIN, v=1, w=1)
    prices = dict.fromkeys(("plain", "onednn", "plain first", "onednn first to last"), 10.0)
    prices.update(dict.fromkeys(broken, math.inf))
    program, choices = tuned(program_of(model), priced(by_name(prices, copy=1)))
    convolutions = [choice for choice in choices if not choice.group.startswith("copy ")]
    assert not any(choice.chosen in broken for choice in convolutions)
    assert_same(model, program, FEEDS)


def test_parts_of_tensors_are_not_taken_for_whole_ones() -> None:
    """A slice has the strides of what it was cut from."""
    body = (
        f"{conv('a', 'x', 'v')} s, t = Split <axis = 1, num_outputs = 2> (a) {conv('b', 's', 'h')} "
    )
    model = model_of(f"{body} c = Concat <axis = 1> (b, t) y = Tanh(c)", v=1)
    array = np.random.default_rng(5).standard_normal((4, 4, 3, 3), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(array, "h"))
    prices = {"onednn": 10.0, "plain": 10.0}
    program, _ = tuned(program_of(model), priced(by_name(prices, copy=1)))
    text = assert_same(model, program, FEEDS)
    assert "= s.contiguous(memory_format=torch.channels_last)" in text


def random_price(seed: int) -> Callable[[str, str], float]:
    source = np.random.default_rng(seed)
    return lambda _key, _name: float(source.integers(1, 30))


@pytest.mark.parametrize("seed", range(16))
def test_random_orders_give_the_same_numbers(seed: int) -> None:
    model, feeds = random_model(seed)
    program, _ = tuned(program_of(model), priced(random_price(seed)))
    assert_same(model, program, feeds)


@pytest.mark.parametrize("seed", range(12))
def test_the_choice_is_the_least_of_all(seed: int) -> None:
    program = program_of(random_model(seed)[0])
    made = Plan.of(program, groups_of(program.model), priced(random_price(seed)))
    formats = MemoryFormatProblem(made)
    for step in made.library_steps():
        formats.add(step)
    problem = formats.problem()
    answer = solve(problem)
    assert answer.optimal
    assert cost_of(problem, answer.choice) == answer.cost == brute_force(problem)


def test_what_meets_in_a_sum_is_copied_before_it() -> None:
    """An operator that passes orders on gets all operands in one."""
    joint = "b = Relu(a) t = Tanh(b) u = CumSum(x, axis) c = Mul(t, u)"
    model = model_of(f"{conv('a', 'x', 'v')} {joint} {conv('y', 'c', 'w')}", v=1, w=1)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(1), "axis"))
    prices = {"onednn": 10.0, "plain": 10.0, "onednn first to last": 10.0}
    program, _ = tuned(program_of(model), priced(by_name(prices, copy=1)))
    copied = [s.realisation for s in program.steps if isinstance(s.realisation, EagerInOrder)]
    assert [each.reads for each in copied] == [LAST]
    text = assert_same(model, program, FEEDS)
    assert "channels_last = u.contiguous(memory_format=torch.channels_last)" in text


def test_steps_without_convolutions_are_left_alone() -> None:
    text = f"{HEAD} g (float[2,3,4,5] x) => (float[2,3,4,5] y) {{ a = Exp(x) y = Tanh(a) }}"
    program = program_of(onnx.parser.parse_model(text))
    made = Plan.of(program, groups_of(program.model))
    steps: Sequence[ProgramStep] = made.library_steps()
    assert with_memory_formats(steps, made) == steps
