"""Activations that exporters spell out and that LiteRT has as one builtin."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from relayout.graph.read import constant_of, is_op

CLOSE = 1e-5
MOST_FACTORS = 3


def gelu_operand(product: ir.Node) -> ir.Value | None:
    """What a product is the GELU of: x · ½ · (1 + erf(x / √2)), in any order of the factors."""
    factors = list(_factors(product))
    numbers, values = _parted(factors)
    if len(values) != 2 or len(numbers) != 1 or not np.isclose(numbers[0], 0.5, rtol=CLOSE):
        return None
    for first, other in (values, values[::-1]):
        if _is_other(_one_plus_erf_of(first), other):
            return other
    return None


def hard_swish_operand(product: ir.Node) -> ir.Value | None:
    """What a product is the hard swish of: x · min(max(x + 3, 0), 6) / 6."""
    numbers, values = _parted(list(_factors(product)))
    if len(values) != 2 or len(numbers) > 1:
        return None
    factor = numbers[0] if numbers else 1.0
    for first, other in (values, values[::-1]):
        if not numbers and _is_other(_hard_sigmoid_of(first), other):
            return other
        if np.isclose(factor, 1 / 6, rtol=CLOSE) and _is_other(_clipped_plus_three(first), other):
            return other
    return None


def _is_other(found: ir.Value | None, other: ir.Value) -> bool:
    return found is not None and found is other


def _parted(factors: list[ir.Value | float]) -> tuple[list[float], list[ir.Value]]:
    numbers = [factor for factor in factors if isinstance(factor, float)]
    return numbers, [factor for factor in factors if not isinstance(factor, float)]


def _factors(node: ir.Node, depth: int = 0) -> Iterator[ir.Value | float]:
    """What is multiplied, through products that nothing else reads."""
    divides = is_op(node, "Div")
    for index, value in enumerate(node.inputs[:2]):
        if value is None:
            continue
        number = number_of(value)
        if number is not None:
            yield 1 / number if divides and index == 1 and number else number
            continue
        producer = value.producer()
        is_inner = producer is not None and len(value.uses()) == 1 and depth < MOST_FACTORS
        if divides and index == 1:
            yield value
            yield float("nan")
        elif producer is not None and is_inner and is_op(producer, "Mul", "Div"):
            yield from _factors(producer, depth + 1)
        else:
            yield value


def number_of(value: ir.Value | None) -> float | None:
    """The one number that a constant holds."""
    tensor = constant_of(value)
    if (
        tensor is None
        or tensor.size != 1
        or tensor.dtype
        not in {
            ir.DataType.FLOAT,
            ir.DataType.FLOAT16,
        }
    ):
        return None
    return float(tensor.numpy().reshape(-1)[0])


def _with_number(node: ir.Node | None, *op_types: str) -> tuple[ir.Value, float] | None:
    """The operand of a node that is computed, and the one that is a constant number."""
    if node is None or not is_op(node, *op_types) or len(node.inputs) != 2:
        return None
    for index in (0, 1):
        value, number = node.inputs[1 - index], number_of(node.inputs[index])
        if number is not None and value is not None and (index == 1 or not is_op(node, "Div")):
            return value, number
    return None


def _one_plus_erf_of(value: ir.Value) -> ir.Value | None:
    shifted = _with_number(value.producer(), "Add")
    if shifted is None or not np.isclose(shifted[1], 1.0, rtol=CLOSE):
        return None
    erf = shifted[0].producer()
    if erf is None or not is_op(erf, "Erf") or erf.inputs[0] is None:
        return None
    scaled = erf.inputs[0].producer()
    found = _with_number(scaled, "Mul", "Div")
    if found is None:
        return None
    factor = 1 / found[1] if is_op(scaled, "Div") else found[1]
    return found[0] if np.isclose(factor, np.sqrt(0.5), rtol=CLOSE) else None


def _hard_sigmoid_of(value: ir.Value) -> ir.Value | None:
    node = value.producer()
    if node is None or not is_op(node, "HardSigmoid"):
        return None
    alpha, beta = node.attributes.get_float("alpha", 0.2), node.attributes.get_float("beta", 0.5)
    is_sixth = np.isclose(alpha, 1 / 6, rtol=CLOSE) and np.isclose(beta, 0.5, rtol=CLOSE)
    return node.inputs[0] if is_sixth else None


def _clipped_plus_three(value: ir.Value) -> ir.Value | None:
    node = value.producer()
    if node is None or not is_op(node, "Clip") or bounds_of(node) != (0.0, 6.0):
        return None
    shifted = _with_number(node.inputs[0].producer() if node.inputs[0] else None, "Add")
    return shifted[0] if shifted is not None and shifted[1] == 3.0 else None


def bounds_of(node: ir.Node) -> tuple[float, float] | None:
    """The least and largest number that a Clip lets pass; None where they are not constants."""
    lowest, highest = -np.inf, np.inf
    if "min" in node.attributes or "max" in node.attributes:
        return (
            node.attributes.get_float("min", lowest),
            node.attributes.get_float("max", highest),
        )
    bounds = []
    for index, default in ((1, lowest), (2, highest)):
        given = node.inputs[index] if len(node.inputs) > index else None
        number = default if given is None else number_of(given)
        if number is None:
            return None
        bounds.append(number)
    return bounds[0], bounds[1]
