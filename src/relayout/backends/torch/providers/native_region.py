"""A run of groups as one program of C++ kernels, with the same in torch where none can be built."""

from __future__ import annotations

import hashlib
import pprint
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import onnx_ir as ir

from relayout.backends.torch.program.draft import WEIGHTS, ModuleDraft
from relayout.backends.torch.program.program import ProgramStep, RunsOutsideTorch
from relayout.backends.torch.program.scope import Scope
from relayout.backends.torch.program.statements import indented
from relayout.backends.torch.providers.library_group import LibraryGroup
from relayout.backends.torch.providers.native_build import BufferedValue, Builder
from relayout.backends.torch.providers.native_interface import INTERFACE, KernelKind
from relayout.backends.torch.providers.native_joins import joined
from relayout.backends.torch.providers.native_steps import TILES, entry_of, placed
from relayout.backends.torch.providers.orders import FIRST, LAST, Order
from relayout.backends.torch.providers.window import Sliding, known_shape
from relayout.backends.torch.runtime.native import NativeProgram
from relayout.backends.torch.runtime.native_library import NativeFailure, NativeSource

SOURCE = "NATIVE_SOURCE"
FILES = (
    "vector.h",
    "product.h",
    "strassen.h",
    "winograd.h",
    "filter.h",
    "channels.h",
    "program.cpp",
)
HEAVY = frozenset((KernelKind.CONVOLUTION, KernelKind.STRASSEN, KernelKind.DEPTHWISE, *TILES))


@cache
def native_source() -> NativeSource:
    """The kernels as one text, with the interface that they and their callers have."""
    folder = resources.files("relayout.backends.torch.providers") / "native"
    texts = [(folder / name).read_text(encoding="utf-8") for name in FILES]
    text = "\n".join(
        re.sub(r'^#(include "|pragma once).*\n', "", text, flags=re.M) for text in texts
    )
    return NativeSource(INTERFACE.literal, text)


def native_failure() -> str | None:
    """Why the kernels cannot be built or loaded here; None where they can."""
    library = native_source().library
    return library.reason if isinstance(library, NativeFailure) else None


@cache
def native_mark() -> str:
    """A digest of these kernels: times of other versions do not hold for them."""
    return hashlib.sha256(native_source().whole.encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class Native:
    """A program of kernels: its steps, operands, results and weights."""

    entries: list[dict[str, Any]]
    arena: int
    orders: tuple[str, ...]
    results: tuple[tuple[int, tuple[int, ...], bool], ...]
    weights: dict[str, ir.TensorProtocol]


def native_of(builder: Builder, results: Sequence[ir.Value]) -> Native | None:
    """The program that a builder has collected; None if a result is not a tensor of its own."""
    stored = [builder.stored[value] for value in results]
    orders = _orders(builder)
    if orders is None or any(each.buffer.operand is not None for each in stored):
        return None
    buffers = [each.buffer for each in stored]
    steps = joined(builder.steps, buffers)
    places, arena = placed(steps, buffers)
    shapes = [_shape(value, each) for value, each in zip(results, stored, strict=True)]
    return Native(
        [entry_of(step, places) for step in steps],
        arena,
        orders,
        tuple(
            (places[each.buffer], shape, each.is_image)
            for each, shape in zip(stored, shapes, strict=True)
        ),
        builder.weights,
    )


def _shape(value: ir.Value, stored: BufferedValue) -> tuple[int, ...]:
    """The lengths of a result as it is stored."""
    return stored.buffer.image if stored.is_image else known_shape(value) or ()


def _orders(builder: Builder) -> tuple[str, ...] | None:
    """How each operand is to be stored; None where two steps want one in two ways."""
    wanted: dict[int, set[str]] = {index: set() for index in range(len(builder.operands))}
    for step in builder.steps:
        for buffer in (step.source, step.residual):
            if buffer is not None and buffer.operand is not None:
                is_first = step.kind == KernelKind.BORDER_FIRST
                wanted[buffer.operand].add("first" if is_first else "last")
    if any(len(orders) > 1 for orders in wanted.values()):
        return None
    return tuple(next(iter(orders), "last") for orders in wanted.values())


@dataclass(frozen=True, slots=True)
class NativeRegion(RunsOutsideTorch):
    """Writes a region as one call of a program."""

    native: Native
    operands: tuple[ir.Value, ...]
    results: tuple[ir.Value, ...]
    steps: tuple[ProgramStep, ...]
    name: str = "native"

    def reads_in(self, value: ir.Value) -> Order:
        """Channels last, but for what it takes as it comes."""
        order = self.native.orders[self.operands.index(value)]
        return FIRST if order == FIRST else LAST

    def writes_in(self, value: ir.Value) -> Order:
        _, _, is_image = self.native.results[self.results.index(value)]
        return LAST if is_image else FIRST

    def write(self, _nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        draft = scope.draft
        if not any(text.startswith(SOURCE) for text in draft.functions):
            draft.functions.append(_written_source(draft))
        fallback = self._write_fallback(draft, scope)
        table = draft.names.fresh("NATIVE_STEPS")
        draft.functions.append(f"{table} = {_literal(self.native.entries)}")
        weights = ", ".join(
            f"{name!r}: {draft.weight(tensor, name)}"
            for name, tensor in self.native.weights.items()
        )
        ports = f"({self.native.orders!r}, {self.native.results!r})"
        program = draft.prepare(
            "native",
            f"{draft.helper(NativeProgram)}({SOURCE}, {table}, {self.native.arena}, "
            f"{{{weights}}}, {ports}, {fallback})",
        )
        given = ", ".join((WEIGHTS, *(scope.tensor(value) for value in self.operands)))
        results = scope.let("results", f"{program}({given})")
        for index, value in enumerate(self.results):
            scope.bind(value, f"{results}[{index}]")

    def _write_fallback(self, draft: ModuleDraft, scope: Scope) -> str:
        name = draft.names.fresh("region")
        inside = Scope(draft, scope.opsets)
        parameters = [WEIGHTS]
        for value in self.operands:
            parameters.append(draft.names.fresh(value.name or "x"))
            inside.forms[value] = parameters[-1]
        for step in self.steps:
            step.realisation.write(step.nodes, inside)
        lines = inside.finished(inside.returned(self.results))
        head = f"def {name}({', '.join(parameters)}):"
        draft.functions.append("\n".join([head, *indented(lines)]))
        return name


@dataclass(frozen=True, slots=True)
class StepsRegion:
    """Writes the steps of a region one after the other."""

    steps: tuple[ProgramStep, ...]
    name: str = "library"

    def write(self, _nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        for step in self.steps:
            step.realisation.write(step.nodes, scope)


def _written_source(draft: ModuleDraft) -> str:
    source = native_source()
    made = f"{draft.helper(NativeSource)}(\n{_literal(source.interface)},\nr'''\n{source.text}''')"
    return f"{SOURCE} = {made}"


def _literal(values: list[dict[str, Any]] | dict[str, Any]) -> str:
    return re.sub(r"\binf\b", "math.inf", pprint.pformat(values, width=100, sort_dicts=False))


@dataclass(frozen=True, slots=True)
class NativeSpan:
    """Steps that follow each other, and the program that does the same."""

    steps: tuple[ProgramStep, ...]
    native: Native
    operands: tuple[ir.Value, ...]
    results: tuple[ir.Value, ...]

    @property
    def nodes(self) -> tuple[ir.Node, ...]:
        return tuple(node for step in self.steps for node in step.nodes)

    @property
    def candidates(self) -> list[NativeRegion | StepsRegion]:
        native = NativeRegion(self.native, self.operands, self.results, self.steps)
        return [native, StepsRegion(self.steps)]


def native_regions(
    steps: Sequence[ProgramStep],
    groups: dict[ir.Node, LibraryGroup],
    fastest: Callable[[Sliding, list[KernelKind]], KernelKind],
) -> list[NativeSpan | ProgramStep]:
    """The steps, with those that kernels can do joined to regions as long as possible."""
    found: list[NativeSpan | ProgramStep] = []
    builder, held = Builder(fastest), list[ProgramStep]()
    for step in steps:
        group = groups.get(step.nodes[-1]) if len(step.nodes) > 1 else None
        item = group or groups.get(step.nodes[0]) or step.nodes[0]
        if builder.add(item):
            held.append(step)
            continue
        found += _closed(builder, held)
        builder, held = Builder(fastest), []
        if builder.add(item):
            held.append(step)
        else:
            found.append(step)
    return found + _closed(builder, held)


def _closed(builder: Builder, steps: list[ProgramStep]) -> list[NativeSpan | ProgramStep]:
    inside = {node for step in steps for node in step.nodes}
    results = tuple(
        value
        for step in steps
        for node in step.nodes
        for value in node.outputs
        if value.is_graph_output() or any(use.node not in inside for use in value.uses())
    )
    heavy = any(step.kind in HEAVY for step in builder.steps)
    native = native_of(builder, results) if heavy else None
    if native is None:
        return list(steps)
    return [NativeSpan(tuple(steps), native, tuple(builder.operands), results)]
