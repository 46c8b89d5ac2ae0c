"""Over which elements an operator runs, and what that lets other operators do in its kernel."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum

import onnx_ir as ir

from relayout.graph.read import NodeView, Parameter, is_op, perm_of
from relayout.graph.region import KERNEL_DOMAIN
from relayout.layout.transport import Refusal
from relayout.ops.fusing import SHAPING, Fusing, standard_name
from relayout.ops.kind import Kind

AXES = Parameter("axes", 1)


class Role(StrEnum):
    """What an operator does in the loop of a kernel."""

    POINTWISE = "pointwise"
    """Computes an element from the elements of the same place."""
    VIEW = "view"
    """Gives another shape to elements that stay in their order."""
    MOVE = "move"
    """Puts every element in another place."""
    GATHER = "gather"
    """Reads some elements, perhaps several times, or of several tensors."""
    REDUCTION = "reduction"
    """One element for each row."""
    ROWWISE = "rowwise"
    """A row for each row."""
    PRODUCT = "product"
    """Sums of products, each operand read many times."""
    WINDOW = "window"
    """Combines the elements of windows."""
    COMPLEX = "complex"
    """Some other kernel, which elementwise operators may follow."""
    OPAQUE = "opaque"
    """Has a kernel of its own, or one whose form is known only when it runs."""


@dataclass(frozen=True, slots=True)
class Iteration:
    role: Role
    axes: tuple[int, ...] = ()
    """The axes of operand 0 along which a row lies."""
    move: Hashable = None
    """Names the places to which a move puts elements."""
    streamed: tuple[int, ...] = ()
    """The operands that may be computed while the kernel reads them."""


def is_view(node: ir.Node) -> bool:
    """Whether a node only gives another shape, or none, to the elements it reads."""
    return is_op(node, "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")


def iteration_of(view: NodeView, fusing: Fusing) -> Iteration:
    if fusing.kind is Kind.OPAQUE:
        return Iteration(Role.OPAQUE)
    name = standard_name(view.node) or ""
    if any(view.has(place) and not view.is_constant(place) for place in SHAPING.get(name, ())):
        return Iteration(Role.OPAQUE)
    if is_view(view.node) and name != "Identity":
        return Iteration(Role.VIEW)
    if name in _MOVES:
        return _moving(view, name)
    if name in _GATHERS:
        return Iteration(Role.GATHER)
    if fusing.kind <= Kind.BROADCAST:
        return Iteration(Role.POINTWISE)
    if fusing.kind is Kind.INJECTIVE:
        return Iteration(Role.GATHER)
    if name in _STREAMED:
        role = Role.WINDOW if name.endswith("Pool") else Role.PRODUCT
        return Iteration(role, streamed=_STREAMED[name])
    return _by_rows(view, name)


def _moving(view: NodeView, name: str) -> Iteration:
    if name == "Transpose":
        perm = perm_of(view.node)
        return Iteration(Role.GATHER) if perm is None else Iteration(Role.MOVE, move=perm.axes)
    settings = (name, view.integer("blocksize", 0), view.string("mode", "DCR"))
    return Iteration(Role.MOVE, move=settings)


def _by_rows(view: NodeView, name: str) -> Iteration:
    role = Role.REDUCTION if name in _REDUCING else Role.ROWWISE if name in _ROWWISE else None
    axes = None if role is None else _row_axes(view, name)
    return Iteration(Role.COMPLEX) if role is None or not axes else Iteration(role, axes)


def _row_axes(view: NodeView, name: str) -> tuple[int, ...] | None:
    """The axes of operand 0 along which a row lies; None where they are not known."""
    rank = view.rank(0)
    if rank is None or view.unknown_attribute is not None:
        return None
    if name.startswith("Global") or name == "InstanceNormalization":
        is_last = view.node.domain == KERNEL_DOMAIN
        return tuple(range(1, rank - 1)) if is_last else tuple(range(2, rank))
    if name.startswith("Reduce"):
        return _reduced(view, rank)
    if name in {"ArgMax", "ArgMin"}:
        return _placed((view.integer("axis", 0),), rank)
    if name == "LpNormalization":
        return _placed((view.integer("axis", -1),), rank)
    return _normalised(view, name, rank)


def _normalised(view: NodeView, name: str, rank: int) -> tuple[int, ...] | None:
    """Softmax took all axes from one on as a row in early versions, as normalisations do."""
    is_softmax = name in {"Hardmax", "LogSoftmax", "Softmax"}
    takes_rest = not is_softmax or view.version < SOFTMAX_OF_ONE_AXIS
    first = _placed((view.integer("axis", 1 if takes_rest and is_softmax else -1),), rank)
    return tuple(range(first[0], rank)) if first and takes_rest else first


SOFTMAX_OF_ONE_AXIS = 13
"""The opset version from which Softmax and its kin work along one axis."""


def _reduced(view: NodeView, rank: int) -> tuple[int, ...] | None:
    given = AXES.read_ints(view)
    if isinstance(given, Refusal):
        return None
    if not given:
        return None if view.integer("noop_with_empty_axes", 0) else tuple(range(rank))
    return _placed(given, rank)


def _placed(axes: tuple[int, ...], rank: int) -> tuple[int, ...] | None:
    """Axes counted from the front; None if one is not there."""
    if any(not -rank <= axis < rank for axis in axes):
        return None
    return tuple(sorted({axis % rank for axis in axes}))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MOVES = _words("DepthToSpace SpaceToDepth Transpose")
_GATHERS = _words("Tile")
_REDUCING = _words(
    """ArgMax ArgMin GlobalAveragePool GlobalMaxPool ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp
    ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"""
)
_ROWWISE = _words(
    """Hardmax InstanceNormalization LayerNormalization LogSoftmax LpNormalization RMSNormalization
    Softmax"""
)
_STREAMED = {
    "AveragePool": (0,),
    "Conv": (0, 1),
    "ConvTranspose": (0, 1),
    "Einsum": (0, 1),
    "Gemm": (0, 1),
    "LpPool": (0,),
    "MatMul": (0, 1),
    "MaxPool": (0,),
    "com.microsoft.FusedMatMul": (0, 1),
}

_COSTLY = _words(
    """Acos Acosh Asin Asinh Atan Atanh Celu Cos Cosh Div Elu Erf Exp Gelu Log Mish Mod Pow
    Reciprocal Selu Sigmoid Sin Sinh Softplus Softsign Sqrt SwiGLU Swish Tan Tanh"""
)
COSTLY_WORK = 16
"""How many simple operations a costly one takes the time of."""


def work_per_element(node: ir.Node) -> int:
    """The simple operations that one element of a pointwise result takes."""
    return COSTLY_WORK if standard_name(node) in _COSTLY else 1


_EXACT = _words(
    """Abs Cast CastLike Expand Flatten Identity Neg Not Relu Reshape Sign Squeeze Transpose
    Unsqueeze"""
)


def is_exact(node: ir.Node) -> bool:
    """Whether doing it again gives the same bits and costs no more than a read."""
    return standard_name(node) in _EXACT


def is_zero_padding(view: NodeView) -> bool:
    """Whether a Pad only puts zeros around its operand, as a convolution can do by itself."""
    if not is_op(view.node, "Pad") or view.string("mode", "constant") != "constant":
        return False
    pads = Parameter("pads", 1).read_ints(view)
    filler = view.constant(2) if view.has(2) else None
    is_zero = not view.has(2) or (filler is not None and not filler.any())
    is_grown = pads is not None and not isinstance(pads, Refusal) and min(pads, default=-1) >= 0
    return is_zero and is_grown and view.node.attributes.get("value") is None
