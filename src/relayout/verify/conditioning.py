"""How much the results of a model change though it computes the same: its own rounding.

A model is run on inputs of which each float is changed by one unit in the last place, at another
level of ONNX Runtime, in wider floats, and, several times, with weights changed like the inputs.
What changes an element as much as the other model does is no fault of that model. One run is a
poor sample: where an element stands almost alone in its slice, as in a row of Softmax that is sure,
rounding may leave it untouched by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from onnx import numpy_helper

from relayout.verify.difference import MOST_NOISE
from relayout.verify.quantisers import tensors_of
from relayout.verify.runtimes import (
    EXTENDED,
    ONNX_RUNTIME,
    Derived,
    Feeds,
    RefusedError,
    Run,
    derived,
    read,
    seen,
)
from relayout.verify.tails import outputs_of_sigmoids
from relayout.verify.wider import widen, widened_feeds

if TYPE_CHECKING:
    from relayout.verify.interface import Interface
    from relayout.verify.runtimes import Runnable

Rerun: TypeAlias = Callable[[Feeds], list[Any]]
"""A way to run a model, which may refuse."""

SEED = 17
DRAWS = 6
"""How often weights are changed, at the most."""
LARGEST_COPY = 1 << 28
"""Bytes of all copies with other weights that are open at a time."""


@dataclass(frozen=True)
class Conditioning:
    """The ways to run a model that change its results by rounding alone, the cheapest first."""

    ways: tuple[Rerun, ...]
    most: float = MOST_NOISE
    """The largest change, relative to the scale, that is taken for rounding."""
    tails: frozenset[str] = frozenset()
    """The outputs whose small numbers are rounded as 1 is."""

    def results(self, feeds: Feeds) -> Iterator[list[Any]]:
        """The results of each way that can be gone, made as they are asked for."""
        for way in self.ways:
            try:
                yield way(feeds)
            except RefusedError:
                continue

    def first(self, count: int) -> Conditioning:
        """What is known of the first few results alone."""
        return replace(self, ways=tuple(_first(way, count) for way in self.ways))


def _first(way: Rerun, count: int) -> Rerun:
    return lambda feeds: way(feeds)[:count]


def of_run(original: Run, given: Container[str] | None = None) -> Conditioning:
    """What can be learned from a function alone; `given` names the inputs that may be changed."""
    return Conditioning((lambda feeds: original(nudged(feeds, given)),))


def of_model(
    original: Run,
    source: Runnable,
    interface: Interface,
    given: Container[str] | None = None,
    most: float = MOST_NOISE,
) -> Conditioning:
    """What can be learned from a model that is at hand as a message."""
    other_level = _Later(lambda: EXTENDED.load(source, interface))
    wider = _Later(lambda: ONNX_RUNTIME.load(derived(widen(read(source)), source), interface))
    reweighted = [_reweighted_run(source, interface, given, draw) for draw in range(DRAWS)]
    return Conditioning(
        (
            *of_run(original, given).ways,
            other_level,
            lambda feeds: wider(widened_feeds(feeds)),
            *reweighted,
        ),
        most,
        outputs_of_sigmoids(seen(source)),
    )


def _reweighted_run(
    source: Runnable, interface: Interface, given: Container[str] | None, draw: int
) -> Rerun:
    """Runs a copy with other weights on other inputs; each is opened when it is needed."""
    run = _Later(lambda: ONNX_RUNTIME.load(_reweighted(source, draw), interface))
    return lambda feeds: run(nudged(feeds, given, draw))


@dataclass
class _Later:
    """A run that is opened when it is first needed; a refusal to open it is kept."""

    open: Callable[[], Run]
    opened: list[Run] = field(default_factory=list)
    refusal: RefusedError | None = None

    def __call__(self, feeds: Feeds) -> list[Any]:
        if self.refusal is not None:
            raise self.refusal
        if not self.opened:
            self._open()
        return self.opened[0](feeds)

    def _open(self) -> None:
        try:
            self.opened.append(self.open())
        except RefusedError as refusal:
            self.refusal = refusal
            raise


def nudged(feeds: Feeds, names: Container[str] | None = None, draw: int = 0) -> dict[str, Any]:
    """Inputs of which each float is changed by one unit in the last place, up or down."""
    rng = np.random.default_rng(SEED + draw)
    return {
        name: _nudged(value, rng) if names is None or name in names else value
        for name, value in feeds.items()
    }


def _nudged(value: Any, rng: np.random.Generator) -> Any:
    if isinstance(value, list):
        return [_nudged(part, rng) for part in value]
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return value
    towards = np.where(rng.integers(0, 2, value.shape), np.inf, -np.inf).astype(value.dtype)
    # Zeros are mostly padding and masks, of which there is nothing to round.
    return np.where(value == 0, value, np.nextafter(value, towards))


def _reweighted(source: Runnable, draw: int) -> Derived:
    model = read(source)
    if (draw + 1) * model.ByteSize() > LARGEST_COPY:
        raise RefusedError("the model is too large for a copy with other weights")
    rng = np.random.default_rng(SEED + draw)
    for tensor in tensors_of(model.graph):
        # Vectors and scalars are scales, limits and axes, which are often meant to the bit.
        if len(tensor.dims) > 1 and not tensor.external_data:
            changed = _nudged(numpy_helper.to_array(tensor), rng)
            tensor.CopyFrom(numpy_helper.from_array(changed, tensor.name))
    return derived(model, source)
