"""Prices of a runtime, measured on this machine by small models of one operator."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from relayout.errors import RelayoutError
from relayout.graph.io.version import __version__
from relayout.targets.prices.table import FactorRate, Rate, RuntimePrices
from relayout.targets.target import Target
from relayout.timing.engines import ENGINES, Engine

SECONDS = 0.25
"""How long each form is run, by time on the core."""
LEAST_RUNS = 5
COPIES = 4
"""How many nodes of a form a model has."""
CHAIN = 256
"""How many nodes a model has that shows what starting a kernel takes, and not the model."""
OPSET, IR_VERSION = 17, 9
CONTRIB = "com.microsoft"
LARGEST = 10**12

SIZES = ((1_200_000, 56), (5_000_000, 224), (LARGEST, 1792))
"""By the most bytes for which a rate holds: a length that makes a tensor about that large."""


@dataclass(frozen=True, slots=True)
class TimedForm:
    """An operator that is timed, with the shapes of its operands."""

    op_type: str
    operands: tuple[tuple[int, ...], ...]
    constants: tuple[int, ...] = ()
    """Which operands are constants."""
    attributes: tuple[tuple[str, Any], ...] = ()
    domain: str = ""
    nodes: int = COPIES

    def model(self) -> bytes:
        graph = helper.make_graph([], "form", [], [])
        for number in range(self.nodes):
            names = [f"x{number}_{index}" for index in range(len(self.operands))]
            for index, (name, shape) in enumerate(zip(names, self.operands, strict=True)):
                if index in self.constants:
                    array = np.ones(shape, np.float32)
                    graph.initializer.append(numpy_helper.from_array(array, name))
                else:
                    graph.input.append(
                        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
                    )
            result, attributes = f"y{number}", dict(self.attributes)
            node = helper.make_node(self.op_type, names, [result], domain=self.domain, **attributes)
            graph.node.append(node)
            graph.output.append(helper.make_tensor_value_info(result, TensorProto.FLOAT, None))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        model: onnx.ModelProto = helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION
        )
        return bytes(model.SerializeToString())

    def feeds(self) -> dict[str, Any]:
        return {
            f"x{number}_{index}": np.ones(shape, np.float32)
            for number in range(self.nodes)
            for index, shape in enumerate(self.operands)
            if index not in self.constants
        }


@dataclass
class Stopwatch:
    """Times forms in a runtime on one thread."""

    engine: Engine
    seconds: float = SECONDS

    def picoseconds(self, form: TimedForm) -> int:
        """What a node takes, by the quickest quarter of all runs."""
        run, feeds = self.engine.open(form.model(), 1), form.feeds()
        run(feeds)
        taken: list[float] = []
        until = time.thread_time() + self.seconds
        while time.thread_time() < until or len(taken) < LEAST_RUNS:
            since = time.thread_time()
            run(feeds)
            taken.append(time.thread_time() - since)
        return round(sorted(taken)[len(taken) // 4] / form.nodes * 1e12)

    @cached_property
    def node(self) -> int:
        """Picoseconds to start a kernel."""
        return self.picoseconds(TimedForm("Relu", ((1,),), nodes=CHAIN))

    def rates(self, forms: Mapping[int, TimedForm], item: int = 0) -> tuple[tuple[int, int], ...]:
        """Picoseconds a byte, by the most bytes for which they hold; `item`: those of each run."""
        rows = []
        for most, form in forms.items():
            shape = form.operands[0]
            items = prod(shape) // shape[-1] * item
            left = self.picoseconds(form) - self.node - items
            rows.append((most, max(0, left // (2 * 4 * prod(shape)))))
        return tuple(rows)


def measured_prices(target: Target, seconds: float = SECONDS) -> RuntimePrices:
    """The table of a target as this machine has it."""
    if target.engine not in ENGINES or target.prices is None:
        raise RelayoutError(f"there is no table of prices to measure for {target.name!r}")
    engine = ENGINES[target.engine]
    watch = Stopwatch(engine, seconds)
    rows_item = _per_row(watch)
    scatter_item = _per_element(watch)
    moves = {
        "rows": Rate(rows_item, watch.rates(_transposes((0, 2, 1, 3), (2, 0, 7, 672)), rows_item)),
        "axis": Rate(0, watch.rates(_transposes((0, 2, 1), (4, 0, 168)))),
        "scatter": Rate(scatter_item, _beyond(watch, scatter_item)),
    }
    streams = {most: TimedForm("Relu", ((length, 2688),)) for most, length in SIZES}
    return RuntimePrices(
        f"{engine.name} {engine.version}",
        f"{platform.machine()} {platform.processor()}, one thread".strip(),
        watch.node // 1000,
        moves,
        Rate(0, watch.rates(streams)),
        *_factors(watch),
        Rate(_across(watch), ((LARGEST, 0),)),
        target.prices.columns,
        target.prices.minds_unit_axes,
    )


def _transposes(perm: Sequence[int], shape: Sequence[int]) -> dict[int, TimedForm]:
    """Transposes of three sizes; the length 0 stands for what makes them that large."""
    rest = prod(length for length in shape if length)
    forms = {}
    for most, length in SIZES:
        lengths = tuple(each or max(1, length * 2688 // rest) for each in shape)
        forms[most] = TimedForm("Transpose", (lengths,), attributes=(("perm", list(perm)),))
    return forms


def _per_row(watch: Stopwatch) -> int:
    shape = (1, 2048, 3, 4)
    form = TimedForm("Transpose", (shape,), attributes=(("perm", [0, 2, 1, 3]),))
    return max(1, (watch.picoseconds(form) - watch.node) // (prod(shape) // shape[-1]))


def _per_element(watch: Stopwatch) -> int:
    shape = (64, 28, 32)
    form = TimedForm("Transpose", (shape,), attributes=(("perm", [2, 1, 0]),))
    return max(1, (watch.picoseconds(form) - watch.node) // prod(shape))


def _beyond(watch: Stopwatch, item: int) -> tuple[tuple[int, int], ...]:
    """What bytes add to moving elements one by one where they are beyond the caches."""
    shape = (2048, 28, 32)
    form = TimedForm("Transpose", (shape,), attributes=(("perm", [2, 1, 0]),))
    left = watch.picoseconds(form) - watch.node - item * prod(shape)
    return (SIZES[1][0], 0), (LARGEST, max(0, left // (2 * 4 * prod(shape))))


def _across(watch: Stopwatch) -> int:
    """Picoseconds an element that a reduction takes longer if it keeps the innermost axis."""
    shapes = {1: (1, 32, 4096), 2: (1, 4096, 32)}
    across, along = (
        watch.picoseconds(TimedForm("ReduceMean", (shape,), attributes=(("axes", [axis]),)))
        for axis, shape in shapes.items()
    )
    return max(0, (across - along) // prod(shapes[1]))


def _factors(watch: Stopwatch) -> tuple[FactorRate, FactorRate]:
    """What a transposed first factor adds, and a constant one."""
    flags = (("transA", 1),)
    batch, rows, inner, columns = 64, 49, 32, 49
    plain = TimedForm("MatMul", ((batch, rows, inner), (batch, inner, columns)))
    turned = TimedForm(
        "FusedMatMul",
        ((batch, inner, rows), (batch, inner, columns)),
        attributes=flags,
        domain=CONTRIB,
    )
    added = watch.picoseconds(turned) - watch.picoseconds(plain)
    element = max(0, added // (batch * rows * inner))
    rows, inner, columns = 196, 192, 768
    products = rows * inner * columns
    weighted = watch.picoseconds(TimedForm("MatMul", ((rows, inner), (inner, columns)), (1,)))
    turned = TimedForm(
        "FusedMatMul", ((inner, rows), (inner, columns)), (1,), attributes=flags, domain=CONTRIB
    )
    added = watch.picoseconds(turned) - weighted - element * rows * inner
    first = (
        watch.picoseconds(TimedForm("MatMul", ((columns, inner), (inner, rows)), (0,))) - weighted
    )
    return (
        FactorRate(element, max(0, added * 1000 // products)),
        FactorRate(0, max(0, first * 1000 // products)),
    )


def kept(target: Target, prices: RuntimePrices) -> Path:
    """Where a table was written, for `--prices`."""
    folder = os.environ.get("RELAYOUT_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "relayout"
    path = (Path(folder) if folder else home) / f"prices-{target.name}-{__version__}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(prices.to_json(), indent=2) + "\n", "utf-8")
    return path
