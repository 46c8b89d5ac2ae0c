"""All that is known of an operator, declared once in the file of its family."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from relayout.graph.read import NodeView
from relayout.layout.blocks import Symbol
from relayout.layout.splitting import AxisMap
from relayout.layout.transport import Refusal
from relayout.ops.kernels import KernelFacts
from relayout.ops.lengths.cuts import Cut
from relayout.ops.lengths.entries import Entries, Known
from relayout.ops.rule import NOTHING_KNOWN, OpRule
from relayout.ops.shuffles import ShuffleFacts

if TYPE_CHECKING:
    from relayout.ops.control import Tie

    TieRule: TypeAlias = Callable[[NodeView], Iterable[Tie]]

AxesRule: TypeAlias = Callable[[NodeView], AxisMap | Refusal]
EntriesRule: TypeAlias = Callable[[NodeView, Known], Entries | None]
OperandsRule: TypeAlias = Callable[[NodeView], Sequence[int]]
CutsRule: TypeAlias = Callable[[NodeView, Known], Mapping[int, Cut]]
DivisorsRule: TypeAlias = Callable[[NodeView, Known], frozenset[Symbol]]


class KnownLayout(Enum):
    """The layout of operand 0 and of the results, where the operator fixes it."""

    CHANNELS_FIRST = "channels first"
    """Batch, channels, spatial axes."""
    PLAIN = "plain"
    """The axes are those of matrices."""


@dataclass(frozen=True, slots=True)
class LayoutFacts:
    """What is known from an operator about the layouts of the tensors it touches."""

    known: KnownLayout | None = None
    weight: tuple[int, str] | None = None
    """The operand that is the weight of a convolution, and what its first two axes are."""
    prefers_channels_first: bool = False
    """Whether it takes any layout, but is mostly given channels first."""
    carries: bool = False
    """Whether its results have the axes of its operands."""


CARRIES = LayoutFacts(carries=True)
CHANNELS_FIRST = LayoutFacts(KnownLayout.CHANNELS_FIRST)


@dataclass(frozen=True, slots=True)
class LengthFacts:
    """What is known from an operator about the lengths of its results."""

    entries: EntriesRule | None = None
    """What its first result holds, where that is a small vector of integers."""
    shape: EntriesRule | None = None
    """The lengths of its result, where its target shape is computed or onnx does not know it."""
    broadcast: OperandsRule | None = None
    """The operands that are broadcast to the shape of the result."""
    expands_to: int | None = None
    """The operand that is a shape to which operand 0 is broadcast."""
    cuts: CutsRule | None = None
    """How much it leaves of the axes that it cuts."""
    divisors: DivisorsRule | None = None
    """The lengths that it divides by, so that none of them is 0 in a run that succeeds."""
    keeps_shape: bool = False
    """Whether its results have the shape of operand 0; used where onnx infers no shape."""
    is_shaped_by_constants: bool = False
    """Whether the shape is known as soon as all operands but the first are constant."""


class Evaluation(Enum):
    """Operators that may be evaluated at compile time: their definition leaves one result."""

    MOVES = "moves"
    """Every element of the result is an element of an operand, bit for bit."""
    INTEGERS = "integers"
    """Exact on integers; shapes are computed with these. Of floats the nearest to what is exact."""
    NATURALS = "naturals"
    """So on integers that are not negative; on others runtimes round in different directions."""
    ROUNDED = "rounded"
    """The nearest float to what is exact; there are no integers of it."""


@dataclass(frozen=True, slots=True)
class NumberFacts:
    """What an operator does to numbers."""

    evaluation: Evaluation | None = None
    quantises: bool = False
    """Whether it rounds to a grid."""
    sums_products: bool = False
    """Whether its result depends, by rounding, on the order in which it adds."""
    joins_quantisers: bool = False
    """Whether runtimes join it with the quantisers around it, to compute in bytes."""
    draws: bool = False
    """Whether it may draw random numbers, so that no two runs are alike."""
    activates: bool = False
    """Whether runtimes apply it to the result of a product within the same kernel."""


class InnerCopies(Enum):
    """Operators whose kernels may copy their operands into another order."""

    SOFTMAX = "softmax"
    """Where its axis is not the last."""
    EINSUM = "einsum"
    """Where its equation is not a product of matrices."""


class Storage(Enum):
    """How torch stores the result; elementwise operators store theirs like their operands."""

    PASSED = "passed"
    """As operand 0 is stored."""
    POOLED = "pooled"
    """As operand 0 is stored, in a time that depends on it."""
    PART = "part"
    """Perhaps as a part of operand 0, with its strides."""
    JOINED = "joined"
    """As the operands are stored, if they are joined along the channels."""


@dataclass(frozen=True, slots=True)
class OpFacts:
    """All that is known of an operator, or of several that are alike."""

    op_types: tuple[str, ...]
    rule: OpRule = NOTHING_KNOWN
    """How it runs when its operands are stored in other orders."""
    domain: str = ""
    kernel: KernelFacts | None = None
    """How it takes part in kernels, if that is known."""
    layout: LayoutFacts = field(default_factory=LayoutFacts)
    axes: AxesRule | None = None
    """Which of its axes belong together, so that they can be split into factors alike."""
    lengths: LengthFacts = field(default_factory=LengthFacts)
    numbers: NumberFacts = field(default_factory=NumberFacts)
    copies: InnerCopies | None = None
    storage: Storage | None = None
    ties: TieRule | None = None
    """What must be stored alike on both sides of the borders of its bodies."""
    repeats: bool = False
    """Whether its bodies may run more than once."""
    by_element: bool = False
    """Whether it treats all elements of operand 0 alike, and each by itself."""
    computes_only: bool = True
    """Whether it only computes, so that it may be removed where nothing reads its results."""
    shuffles: ShuffleFacts | None = None
    """What it does to entries in another order, where that does not follow from `axes`."""
