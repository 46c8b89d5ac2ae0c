"""Operators that act on each element, and on pairs of elements of broadcast operands."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat

import onnx_ir as ir

from relayout.backends.torch.program.call import Call, Lowering, PythonExpression
from relayout.backends.torch.program.dtypes import FLOATS, HELD, UNSIGNED, limits_of
from relayout.backends.torch.program.scalars import Host, Number, Scalar, combine
from relayout.backends.torch.runtime import numbers

WHOLE = frozenset((ir.DataType.INT32, ir.DataType.INT64, ir.DataType.BOOL))
"""Types for which Python numbers replace tensors; floating-point ones would round differently."""


def unary(form: str) -> Lowering:
    return lambda call: form.format(call.tensor(0))


def pair(call: Call) -> tuple[str, str]:
    """Both operands, one of them as a number where it is a constant of one element."""
    left, right = call.either(0, call.rank(1)), call.either(1, call.rank(0))
    if left == call.tensor(0) or right == call.tensor(1):
        return left, right
    return call.tensor(0), right


def on_numbers(
    call: Call,
    form: str,
    compute: Callable[..., Number],
    result: ir.DataType | None = None,
) -> Host | None:
    """The result as Python numbers, where all operands are integers kept as Python numbers."""
    hosts = [call.numbers(index) for index in range(call.arity)]
    given = [host for host in hosts if host is not None and host.dtype in WHOLE]
    if len(given) < len(hosts):
        return None
    length = max(len(host.items) for host in given)
    if any(len(host.items) not in {1, length} for host in given) or length == 0:
        return None
    columns = [_stretched(host, length) for host in given]
    items = tuple(combine(form, row, compute) for row in zip(*columns, strict=True))
    return Host(items, max(host.rank for host in given), result or given[-1].dtype)


def _stretched(host: Host, length: int) -> tuple[Scalar, ...]:
    return host.items if len(host.items) == length else tuple(repeat(host.items[0], length))


def arithmetic(form: str, compute: Callable[..., Number]) -> Lowering:
    def lower(call: Call) -> PythonExpression:
        host = on_numbers(call, form, compute)
        if host is not None:
            return host
        dtype = call.dtype(0) or call.dtype(1)
        if dtype in UNSIGNED:
            wide = [f"{text}.to(torch.int64)" for text in call.tensors]
            return f"({form.format(*wide)}).to({call.torch_dtype(dtype)})"
        return form.format(*map(_operand, pair(call)))

    return lower


def comparison(form: str, compute: Callable[..., bool]) -> Lowering:
    def lower(call: Call) -> PythonExpression:
        host = on_numbers(call, form, compute, ir.DataType.BOOL)
        if host is not None:
            return host
        if (call.dtype(0) or call.dtype(1)) in UNSIGNED:
            return form.format(*(call.helper(numbers.ordered, text) for text in call.tensors))
        return form.format(*map(_operand, pair(call)))

    return lower


def _operand(text: str) -> str:
    """A signed literal in brackets, so that its sign binds first."""
    return f"({text})" if text.startswith("-") else text


def divide(call: Call) -> PythonExpression:
    name = call.scope.draft.helper(numbers.quotient)
    host = on_numbers(call, f"{name}({{}}, {{}})", numbers.quotient)
    if host is not None:
        return host
    left, right = pair(call)
    dtype = call.dtype(0) or call.dtype(1)
    if dtype in FLOATS:
        return f"{_operand(left)} / {_operand(right)}"
    if dtype is None:
        return call.helper(numbers.divide, *call.tensors)
    if dtype in UNSIGNED:
        return call.helper(numbers.divide_unsigned, *call.tensors)
    return f'torch.div({left}, {right}, rounding_mode="trunc")'


def modulo(call: Call) -> PythonExpression:
    if call.dtype(0) in UNSIGNED:
        return call.helper(numbers.remainder_unsigned, *call.tensors)
    if call.integer("fmod", 0):
        return "torch.fmod({}, {})".format(*call.tensors)
    host = on_numbers(call, "{} % {}", lambda a, b: a % b)
    return host if host is not None else "torch.remainder({}, {})".format(*call.tensors)


def power(call: Call) -> PythonExpression:
    """The result has the type of the base, whatever the exponent's is."""
    exponent = call.either(1, call.rank(0))
    if exponent == call.tensor(1) and call.dtype(0) != call.dtype(1):
        return call.helper(numbers.power, call.tensor(0), exponent)
    if call.dtype(0) not in FLOATS and "." in exponent:
        return call.helper(numbers.power, *call.tensors)
    return f"torch.pow({call.tensor(0)}, {exponent})"


def folded(
    function: str, host_function: Callable[..., Number], unsigned: Callable[..., object]
) -> Lowering:
    """A function of two operands applied along a list of them."""

    def lower(call: Call) -> PythonExpression:
        form = f"{host_function.__name__}({', '.join(['{}'] * call.arity)})"
        host = on_numbers(call, form, host_function) if call.arity > 1 else None
        if host is not None:
            return host
        name = call.scope.draft.helper(unsigned) if call.dtype(0) in UNSIGNED else function
        text = call.tensor(0)
        for index in range(1, call.arity):
            text = f"{name}({text}, {call.tensor(index)})"
        return text

    return lower


def total(call: Call) -> str:
    return " + ".join(call.tensors)


def mean(call: Call) -> str:
    return f"({total(call)}) / {call.arity}"


def bit_shift(call: Call) -> str:
    sign = "<<" if call.string("direction", "") == "LEFT" else ">>"
    return call.helper(numbers.bit_shift, *call.tensors, repr(sign))


def where(call: Call) -> PythonExpression:
    host = on_numbers(call, "{1} if {0} else {2}", lambda c, a, b: a if c else b)
    if host is not None:
        return host
    condition = call.tensor(0)
    ranks = [call.rank(0), call.rank(1), call.rank(2)]
    left = call.either(1, _least(ranks[0], ranks[2]))
    right = call.either(2, _least(ranks[0], ranks[1]))
    if left != call.tensor(1) and right != call.tensor(2):
        right = call.tensor(2)
    return f"torch.where({condition}, {left}, {right})"


def _least(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else min(first, second)


def is_inf(call: Call) -> str:
    found = []
    if call.integer("detect_positive", 1):
        found.append("torch.isposinf({0})")
    if call.integer("detect_negative", 1):
        found.append("torch.isneginf({0})")
    form = "torch.isinf({0})" if len(found) == 2 else "".join(found)
    return (form or "torch.zeros_like({0}, dtype=torch.bool)").format(call.tensor(0))


def cast(call: Call) -> PythonExpression:
    return to_dtype(call, ir.DataType(call.integer("to", 0)))


def cast_like(call: Call) -> PythonExpression:
    dtype = call.dtype(1)
    if dtype is None:
        return f"{call.tensor(0)}.to({call.tensor(1)}.dtype)"
    return to_dtype(call, dtype)


def to_dtype(call: Call, dtype: ir.DataType) -> PythonExpression:
    host = call.numbers(0)
    if host is not None and {dtype, host.dtype} <= WHOLE:
        form, convert = ("bool({})", bool) if dtype == ir.DataType.BOOL else ("int({})", int)
        return Host(tuple(combine(form, (item,), convert) for item in host.items), host.rank, dtype)
    if call.dtype(0) == dtype:
        return call.tensor(0)
    if dtype == ir.DataType.FLOAT8E8M0:
        mode = call.string("round_mode", "up")
        return call.helper(numbers.to_exponent, call.tensor(0), repr(mode))
    if dtype.name.startswith("FLOAT8"):
        saturates = bool(call.integer("saturate", 1))
        return call.helper(numbers.to_float8, call.tensor(0), call.torch_dtype(dtype), saturates)
    if dtype == ir.DataType.FLOAT4E2M1:
        return call.helper(numbers.to_float4, call.tensor(0), call.torch_dtype(dtype))
    if dtype in HELD:
        text = call.helper(numbers.wrapped_to, call.tensor(0), *limits_of(dtype))
        return f"{text}.to({call.torch_dtype(dtype)})"
    return f"{call.tensor(0)}.to({call.torch_dtype(dtype)})"


def negate(call: Call) -> PythonExpression:
    host = on_numbers(call, "-{}", lambda a: -a)
    return host if host is not None else f"-{call.tensor(0)}"


def invert(call: Call) -> PythonExpression:
    host = on_numbers(call, "not {}", lambda a: not a, ir.DataType.BOOL)
    return host if host is not None else f"~{call.tensor(0)}"


def bitwise_not(call: Call) -> str:
    dtype = call.dtype(0)
    if dtype in UNSIGNED:
        return f"(~{call.tensor(0)}.to(torch.int64)).to({call.torch_dtype(dtype)})"
    return f"~{call.tensor(0)}"


def bit_cast(call: Call) -> str:
    dtype = ir.DataType(call.integer("to", 0))
    if dtype in HELD or call.dtype(0) in HELD:
        raise call.refusal("looks at the bits of a type that is held in bytes")
    return f"{call.tensor(0)}.view({call.torch_dtype(dtype)})"


def identity(call: Call) -> PythonExpression:
    return call.numbers(0) or call.tensor(0)


LOWERINGS: dict[str, Lowering] = {
    **{
        name: unary(f"torch.{name.lower()}({{}})")
        for name in (
            *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh"),
            *("Erf", "Exp", "Floor", "IsNaN", "Log", "Reciprocal", "Round", "Sign", "Sin", "Sinh"),
            *("Sqrt", "Tan", "Det"),
        )
    },
    "Add": arithmetic("{} + {}", lambda a, b: a + b),
    "Sub": arithmetic("{} - {}", lambda a, b: a - b),
    "Mul": arithmetic("{} * {}", lambda a, b: a * b),
    "Div": divide,
    "Mod": modulo,
    "Pow": power,
    "Min": folded("torch.minimum", min, numbers.minimum_unsigned),
    "Max": folded("torch.maximum", max, numbers.maximum_unsigned),
    "Sum": total,
    "Mean": mean,
    "Neg": negate,
    "Not": invert,
    "And": comparison("{} & {}", lambda a, b: a and b),
    "Or": comparison("{} | {}", lambda a, b: a or b),
    "Xor": comparison("{} ^ {}", lambda a, b: a != b),
    "Equal": comparison("{} == {}", lambda a, b: a == b),
    "Greater": comparison("{} > {}", lambda a, b: a > b),
    "GreaterOrEqual": comparison("{} >= {}", lambda a, b: a >= b),
    "Less": comparison("{} < {}", lambda a, b: a < b),
    "LessOrEqual": comparison("{} <= {}", lambda a, b: a <= b),
    "BitwiseAnd": arithmetic("{} & {}", lambda a, b: a & b),
    "BitwiseOr": arithmetic("{} | {}", lambda a, b: a | b),
    "BitwiseXor": arithmetic("{} ^ {}", lambda a, b: a ^ b),
    "BitwiseNot": bitwise_not,
    "BitCast": bit_cast,
    "BitShift": bit_shift,
    "Where": where,
    "IsInf": is_inf,
    "Cast": cast,
    "CastLike": cast_like,
    "Identity": identity,
}
