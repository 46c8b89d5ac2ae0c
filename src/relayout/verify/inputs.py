"""Draws the values of inputs, the same ones for the same seed."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import onnx

from relayout.verify.bindings import Binding, shape_under
from relayout.verify.ranges import Values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relayout.verify.interface import Interface, Port
    from relayout.verify.verdict import NumericOptions

Array = npt.NDArray[Any]

SMALL = 3
DIGITS = ("0", "1", "2", "10")
WORDS = ("a", "b c", "", "Zürich")
# Wide integers are mostly indices, lengths and sizes; narrow ones are mostly pixels and samples.
NARROW = 1 << 16


@dataclass(frozen=True)
class Draw:
    """A way to draw all inputs: wide integers from `low` to below `high`, narrow ones at will."""

    label: str
    normal: bool
    low: int = 0
    high: int = 2
    whole: bool = False
    override: Literal["none", "floats", "all"] = "none"
    reach: bool = False

    def reaching(self, size: int) -> Draw:
        """Draws integers up to a size too, as lengths and positions along open axes go."""
        return replace(self, high=max(self.high, size + 1)) if self.reach else self

    def overrides(self, port: Port) -> bool:
        if self.override == "floats":
            return _is_float(_dtype(port))
        return self.override == "all"


# Each row is one run, with the ways to draw its inputs from the most thorough to the most modest.
# Whole numbers make sums exact in any order, so that moved elements show as such.
LADDERS: Sequence[Sequence[Draw]] = (
    (
        Draw("whole numbers", normal=False),
        Draw("whole numbers", normal=False, low=1),
        Draw("whole numbers", normal=False, high=1),
    ),
    (
        Draw("normal", normal=True, high=10, whole=True, override="all", reach=True),
        Draw("normal", normal=True, high=10, whole=True, override="all"),
        Draw("normal", normal=True, whole=True, override="floats"),
        Draw("normal", normal=True),
        Draw("normal", normal=True, low=1),
        Draw("normal", normal=True, high=1),
    ),
)


def undrawable(port: Port) -> bool:
    return port.kind not in ("tensor", "sequence", "optional")


def draw_feeds(
    interface: Interface,
    ports: Sequence[Port],
    binding: Binding,
    draw: Draw,
    options: NumericOptions,
    *,
    values: Values | None = None,
) -> dict[str, Any]:
    """Values for the required inputs, given as `ports`, and for the defaults a draw overrides.

    `values`: what the operators take that inputs reach.
    """
    draw = draw.reaching(max(binding.values(), default=0))
    values = values or Values()
    options = _with_values(options, values, ports, binding)
    feeds = {p.name: _value(p, shape_under(p, binding), draw, options) for p in ports}
    for name in values.positive:
        if name in feeds and _is_float(feeds[name].dtype):
            feeds[name] = np.abs(feeds[name])
    for port in interface.optional:
        if port.name in options.fixed or draw.overrides(port):
            shape = options.shapes.get(port.name, port.default or ())
            feeds[port.name] = _value(port, shape, draw, options)
    return feeds


def _with_values(
    options: NumericOptions, values: Values, ports: Sequence[Port], binding: Binding
) -> NumericOptions:
    """The options, with what is known of inputs of which the caller says nothing."""
    ranges = {port.name: values.range_under(port.name, binding) for port in ports}
    known = {name: found for name, found in ranges.items() if found is not None}
    shapes = {port.name: shape_under(port, binding) for port in ports}
    fixed = {
        name: _target(shapes[name][0], rank)
        for name, rank in values.targets.items()
        if len(shapes.get(name, ())) == 1
    }
    fixed |= values.lengths_under(binding)
    return replace(
        options,
        integer_ranges={**known, **options.integer_ranges},
        fixed={**fixed, **options.fixed},
    )


def _target(count: int, rank: int) -> list[int]:
    """A shape of some axes that a tensor of any lengths can have: its own, as far as it goes."""
    kept = max(min(count - 1, rank - 1), 0)
    return ([0] * kept + [-1] + [1] * count)[:count]


def same_feeds(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, list):
        return all(_same(*pair) for pair in zip(left, right, strict=True))
    return bool(np.array_equal(left, right))


def _value(port: Port, shape: tuple[int, ...], draw: Draw, options: NumericOptions) -> Any:
    if port.name in options.fixed:
        array = _fixed(options.fixed[port.name], shape, _dtype(port))
    else:
        seed = [options.seed, zlib.crc32(port.name.encode(errors="surrogateescape")), draw.normal]
        array = _drawn(port, shape, draw, options, np.random.default_rng(seed))
    return [array] if port.kind == "sequence" else array


def _fixed(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    array = np.asarray(value).astype(dtype)
    return np.full(shape, array) if array.ndim == 0 else array


def _drawn(
    port: Port,
    shape: tuple[int, ...],
    draw: Draw,
    options: NumericOptions,
    rng: np.random.Generator,
) -> Array:
    dtype = _dtype(port)
    if dtype.kind == "O":
        return rng.choice(np.array(WORDS if draw.normal else DIGITS, dtype=object), shape)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if _is_float(dtype) and port.name in options.integer_ranges:
        # Floats that name places, such as the image that a region lies in.
        return np.asarray(rng.integers(*options.integer_ranges[port.name], shape)).astype(dtype)
    if _is_float(dtype):
        floats = _floats(shape, dtype, draw, rng)
        # A default is often a variance or a scale, of which a negative one makes all outputs NaN.
        return floats if port.default is None else np.abs(floats).astype(dtype)
    low, high = options.integer_ranges.get(port.name) or _integer_range(dtype, draw)
    return np.asarray(rng.integers(low, high, shape)).astype(dtype)


def _floats(
    shape: tuple[int, ...], dtype: np.dtype[Any], draw: Draw, rng: np.random.Generator
) -> Array:
    parts = [
        rng.standard_normal(shape) if draw.normal else rng.integers(-SMALL, SMALL + 1, shape)
        for _ in range(2 if dtype.kind == "c" else 1)
    ]
    return np.asarray(parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]).astype(dtype)


def _integer_range(dtype: np.dtype[Any], draw: Draw) -> tuple[int, int]:
    lowest, beyond = _whole_range(dtype)
    if draw.whole and beyond - lowest <= NARROW:
        return lowest, beyond
    return draw.low, min(draw.high, beyond)


def _whole_range(dtype: np.dtype[Any]) -> tuple[int, int]:
    # numpy does not know the range of integers of four and fewer bits.
    bits = int(dtype.name.lstrip("uint"))
    return (0, 1 << bits) if dtype.name.startswith("u") else (-1 << bits - 1, 1 << bits - 1)


def _dtype(port: Port) -> np.dtype[Any]:
    if port.element == onnx.TensorProto.STRING:
        return np.dtype(object)
    return onnx.helper.tensor_dtype_to_np_dtype(port.element)


def _is_float(dtype: np.dtype[Any]) -> bool:
    if dtype.kind in "fc":
        return True
    return dtype.kind == "V" and "float" in dtype.name
