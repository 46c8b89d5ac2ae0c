"""Matrix products."""

from __future__ import annotations

from relayout.backends.torch.program.call import Call, Lowering
from relayout.backends.torch.program.dtypes import FLOATS
from relayout.backends.torch.program.scalars import literal


def matmul(call: Call) -> str:
    return f"{call.tensor(0)} @ {call.tensor(1)}"


def gemm(call: Call) -> str:
    alpha, beta = call.real("alpha", 1.0), call.real("beta", 1.0)
    first = call.tensor(0) + (".t()" if call.integer("transA", 0) else "")
    is_transposed, is_plain = bool(call.integer("transB", 0)), alpha == beta == 1
    second = call.tensor(1)
    has_bias = call.has(2)
    if is_transposed and is_plain and (not has_bias or call.rank(2) == 1):
        return f"F.linear({first}, {second}{f', {call.tensor(2)}' if has_bias else ''})"
    second += ".t()" if is_transposed else ""
    if is_plain and has_bias and call.dtype(0) in FLOATS:
        return f"torch.addmm({call.tensor(2)}, {first}, {second})"
    product = f"{first} @ {second}"
    product = product if alpha == 1 else f"{literal(alpha)} * ({product})"
    if not has_bias:
        return product
    return f"{product} + {call.tensor(2) if beta == 1 else f'{literal(beta)} * {call.tensor(2)}'}"


def einsum(call: Call) -> str:
    equation = call.string("equation", "").replace(" ", "")
    return f"torch.einsum({equation!r}, {', '.join(call.tensors)})"


LOWERINGS: dict[str, Lowering] = {
    "MatMul": matmul,
    "Gemm": gemm,
    "Einsum": einsum,
}
