"""Products of matrices: with a constant as a linear layer, or of two batches."""

from __future__ import annotations

from relayout.backends.litert.call import LiteCall, LiteLowering
from relayout.backends.litert.flat_graph import FlatTensor

TURNED = (1, 0)
"""The order of a matrix whose axes are exchanged."""


def matmul(call: LiteCall) -> FlatTensor:
    return _product(call, call.tensor(0), call.tensor(1), adj_x=False, adj_y=False)


def fused_matmul(call: LiteCall) -> FlatTensor:
    """A product whose operands may have their last two axes swapped, times a number."""
    if call.view.integer("transBatchA", 0) or call.view.integer("transBatchB", 0):
        raise call.refusal("LiteRT has no product with batches swapped")
    left, right = call.tensor(0), call.tensor(1)
    adj_x = bool(call.view.integer("transA", 0)) and left.rank > 1
    adj_y = bool(call.view.integer("transB", 0)) and right.rank > 1
    result = _product(call, left, right, adj_x=adj_x, adj_y=adj_y)
    alpha = call.number("alpha", 1.0)
    return result if alpha == 1.0 else call.build.with_scalar("MUL", result, alpha)


def _product(
    call: LiteCall, left: FlatTensor, right: FlatTensor, *, adj_x: bool, adj_y: bool
) -> FlatTensor:
    build = call.build
    if left.rank == 1 or right.rank == 1:
        return _with_vector(call, left, right, adj_x=adj_x, adj_y=adj_y)
    if left.dtype.kind != "f":
        raise call.refusal(f"LiteRT has no product of {left.dtype}")
    if right.data is not None and right.rank == 2 and not adj_x:
        return build.linear(left, right if adj_y else build.transpose(right, TURNED))
    return build.product(left, right, adj_x=adj_x, adj_y=adj_y)


def _with_vector(
    call: LiteCall, left: FlatTensor, right: FlatTensor, *, adj_x: bool, adj_y: bool
) -> FlatTensor:
    """A vector as a matrix of one row, or of one column."""
    build = call.build
    row = build.reshape(left, (1, *left.shape)) if left.rank == 1 else left
    column = build.reshape(right, (*right.shape, 1)) if right.rank == 1 else right
    whole = _product(call, row, column, adj_x=adj_x, adj_y=adj_y)
    shape = list(whole.shape)
    if right.rank == 1:
        del shape[-1]
    if left.rank == 1:
        del shape[-1 if right.rank == 1 else -2]
    return build.reshape(whole, shape)


def gemm(call: LiteCall) -> FlatTensor:
    """A · B times alpha, plus C times beta."""
    build = call.build
    left, right = call.tensor(0), call.tensor(1)
    trans_a, trans_b = (bool(call.view.integer(name, 0)) for name in ("transA", "transB"))
    alpha, beta = call.number("alpha", 1.0), call.number("beta", 1.0)
    addend = call.tensor(2) if call.has(2) and beta != 0.0 else None
    if addend is not None:
        addend = _scaled(call, addend, beta)
    if right.data is not None and not trans_a:
        weight = _scaled(call, right if trans_b else build.transpose(right, TURNED), alpha)
        outputs = weight.shape[0]
        is_bias = (
            addend is not None
            and addend.data is not None
            and addend.shape in {(outputs,), (1, outputs)}
        )
        bias = build.reshape(addend, (outputs,)) if is_bias and addend is not None else None
        result = build.linear(left, weight, bias)
        return result if is_bias or addend is None else build.broadcasting("ADD", [result, addend])
    result = _scaled(call, build.product(left, right, adj_x=trans_a, adj_y=trans_b), alpha)
    return result if addend is None else build.broadcasting("ADD", [result, addend])


def _scaled(call: LiteCall, tensor: FlatTensor, factor: float) -> FlatTensor:
    if factor == 1.0:
        return tensor
    if tensor.data is not None:
        return call.build.constant((tensor.data * factor).astype(tensor.dtype), hint=tensor.name)
    return call.build.with_scalar("MUL", tensor, factor)


LOWERINGS: dict[str, LiteLowering] = {"Gemm": gemm, "MatMul": matmul}

CONTRIB: dict[str, LiteLowering] = {"FusedMatMul": fused_matmul}
