"""Named layouts, and the four classes of tensors of the founding documents."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from relayout.layout.permutation import Permutation


class LayoutClass(Enum):
    """What kind of tensor a layout describes."""

    FEATURE = "Feature"
    """The activations of convolutional operators: N, C and spatial axes."""
    WEIGHT = "Weight"
    """The weights of convolutional operators: O, I and spatial axes."""
    TENSOR = "Tensor"
    """Everything else whose first dimension is 1, or that has fewer than three axes."""
    NTENSOR = "NTensor"
    """Everything else of rank 3 to 6 whose first dimension is not 1."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The names of a tensor's axes, outermost first."""

    axes: str

    def __post_init__(self) -> None:
        if len(set(self.axes)) != len(self.axes):
            raise ValueError(f"layout {self.axes!r} names an axis twice")

    def __str__(self) -> str:
        return self.axes

    @property
    def rank(self) -> int:
        return len(self.axes)

    @property
    def layout_class(self) -> LayoutClass | None:
        """Feature or Weight by its letters; None for a layout of no known class."""
        letters = set(self.axes)
        spatial = letters - set("NCOI")
        if not spatial <= set("DHW"):
            return None
        if letters - spatial == set("NC"):
            return LayoutClass.FEATURE
        if letters - spatial == set("OI"):
            return LayoutClass.WEIGHT
        return None

    def position(self, axis: str) -> int:
        return self.axes.index(axis)

    def to(self, other: Layout) -> Permutation:
        """The `perm` of the Transpose that takes a tensor from this layout to the other."""
        if set(other.axes) != set(self.axes):
            raise ValueError(f"{self} and {other} do not name the same axes")
        return Permutation(tuple(self.axes.index(axis) for axis in other.axes))

    def stored(self, order: Permutation) -> Layout:
        """The layout of a tensor of this layout after a Transpose by `order`."""
        return Layout("".join(order.reorder(self.axes)))


@dataclass(frozen=True, slots=True)
class Colour:
    """How a compiler sees a value: its class and, for features and weights, its axes."""

    layout_class: LayoutClass
    layout: Layout | None = None

    @classmethod
    def named(cls, layout: Layout) -> Colour:
        """The colour of a layout whose letters determine its class."""
        layout_class = layout.layout_class
        if layout_class is None:
            raise ValueError(f"{layout} is a layout of no class")
        return cls(layout_class, layout)

    def __str__(self) -> str:
        return self.layout_class.value if self.layout is None else self.layout.axes


NCW, NWC = Layout("NCW"), Layout("NWC")
NCHW, NHWC = Layout("NCHW"), Layout("NHWC")
NCDHW, NDHWC = Layout("NCDHW"), Layout("NDHWC")
OIW, OWI, WIO, WOI = Layout("OIW"), Layout("OWI"), Layout("WIO"), Layout("WOI")
OIHW, OHWI, HWIO, HWOI = Layout("OIHW"), Layout("OHWI"), Layout("HWIO"), Layout("HWOI")
OIDHW, ODHWI, DHWIO, DHWOI = Layout("OIDHW"), Layout("ODHWI"), Layout("DHWIO"), Layout("DHWOI")
IOW, IOHW, IODHW = Layout("IOW"), Layout("IOHW"), Layout("IODHW")
NC, OI = Layout("NC"), Layout("OI")

_SPATIAL = {0: "", 1: "W", 2: "HW", 3: "DHW"}


def channels_first(rank: int) -> Layout:
    """NC, NCW, NCHW or NCDHW."""
    return Layout("NC" + _spatial(rank))


def channels_last(rank: int) -> Layout:
    """NC, NWC, NHWC or NDHWC."""
    return Layout("N" + _spatial(rank) + "C")


def plain_class(rank: int, leading: int | str | None) -> LayoutClass:
    """The class of a tensor that no convolutional operator reads or writes: Tensor or NTensor."""
    if 3 <= rank <= 6 and leading != 1:
        return LayoutClass.NTENSOR
    return LayoutClass.TENSOR


def _spatial(rank: int) -> str:
    if rank - 2 not in _SPATIAL:
        raise ValueError(f"there is no named feature layout of rank {rank}")
    return _SPATIAL[rank - 2]
