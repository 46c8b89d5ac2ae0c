"""What kernels are asked to do: nodes that lead from operands to results."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeAlias

import onnx_ir as ir

from relayout.backends.torch.program.program import ProgramStep
from relayout.backends.torch.providers.library_group import LibraryGroup
from relayout.backends.torch.providers.site import Site
from relayout.backends.torch.providers.window import Lengths
from relayout.graph.read import constant_of

Borders: TypeAlias = tuple[tuple[ir.Value, ...], tuple[ir.Value, ...]]
"""Operands and results."""


@dataclass(frozen=True, slots=True)
class WorkDescription:
    """Work in values that a stranger can read."""

    operator: str
    source: Lengths
    """The shape of the first operand, for images N C H W."""
    result: Lengths
    kernel: Lengths = ()
    strides: Lengths = ()
    groups: int = 1
    bias: bool = False
    residual: bool = False
    activation: str = ""
    dtype: str = "float32"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Work(ABC):
    """Nodes that are done at once, by one of the kernels that providers have for them."""

    nodes: tuple[ir.Node, ...]
    operands: tuple[ir.Value, ...]
    results: tuple[ir.Value, ...]

    pause: ClassVar[float] = 0.0
    """Seconds to wait before each timed run: threads of one candidate must not disturb another."""

    @abstractmethod
    def key(self, site: Site) -> str:
        """What work that takes the same time has in common: prices are kept by it."""

    @abstractmethod
    def description(self, site: Site) -> WorkDescription: ...


@dataclass(frozen=True)
class GroupWork(Work):
    """A convolution or a product with what follows it."""

    group: LibraryGroup

    @classmethod
    def of(cls, group: LibraryGroup) -> GroupWork:
        operands = [group.source] + ([] if group.residual is None else [group.residual])
        return cls(group.nodes, tuple(dict.fromkeys(operands)), (group.output,), group)

    def key(self, site: Site) -> str:
        group, activation = self.group, self.group.activation
        rest = (
            f"bias{int(group.bias is not None)} sum{int(group.residual is not None)}",
            f"[{activation.low}, {activation.high}] {activation.curve or 'bounds'}",
        )
        window = site.window(group.anchor) if group.is_conv else None
        precision = site.precision.reduced.name
        if window is None:
            shapes = f"{site.shape(group.source)} times {site.shape(group.weight)}"
            return " ".join((shapes, precision, *rest))
        return " ".join(
            (
                f"{'x'.join(map(str, window.source))}->{'x'.join(map(str, window.result))}",
                f"k{window.kernel} s{window.strides} p{window.pads} d{window.dilations}",
                f"g{window.groups} {precision}",
                *rest,
            )
        )

    def description(self, site: Site) -> WorkDescription:
        group = self.group
        window = site.window(group.anchor) if group.is_conv else None
        return WorkDescription(
            group.anchor.op_type,
            site.shape(group.source) or (),
            site.shape(group.output) or (),
            () if window is None else window.kernel,
            () if window is None else window.strides,
            1 if window is None else window.groups,
            group.bias is not None,
            group.residual is not None,
            group.activation.words,
            site.dtype,
        )


@dataclass(frozen=True)
class RunWork(Work):
    """Nodes that no library has one kernel for."""

    @classmethod
    def of(cls, nodes: Sequence[ir.Node]) -> RunWork:
        return cls(tuple(nodes), *borders_of(nodes))

    def key(self, site: Site) -> str:
        """Nodes by their operators and results, and by all else that is known of them."""
        shapes = [f"{node.op_type}{site.shape(node.outputs[0])}" for node in self.nodes]
        details = [
            (
                [str(site.shape(value)) for value in node.inputs],
                sorted(f"{name} {attribute.value}" for name, attribute in node.attributes.items()),
            )
            for node in self.nodes
        ]
        digest = hashlib.sha256(json.dumps(details).encode()).hexdigest()[:8]
        return f"{site.precision.reduced.name} {' '.join(shapes)} {digest}"

    def description(self, site: Site) -> WorkDescription:
        return WorkDescription(
            ", ".join(node.op_type for node in self.nodes),
            *_shapes(self, site),
            dtype=site.dtype,
        )


@dataclass(frozen=True)
class RegionWork(Work):
    """Steps that follow each other and could be done at once."""

    steps: tuple[ProgramStep, ...]
    signature: str

    pause = 0.02  # after which the threads of a candidate no longer wait for more

    def key(self, _site: Site) -> str:
        return self.signature

    def description(self, site: Site) -> WorkDescription:
        names = [node.op_type for node in self.nodes]
        return WorkDescription(
            f"{len(names)} nodes, {names[0]} to {names[-1]}",
            *_shapes(self, site),
            dtype=site.dtype,
        )


def _shapes(work: Work, site: Site) -> tuple[Lengths, Lengths]:
    """The lengths of the first operand and the last result."""
    first, last = (values[:1] or (None,) for values in (work.operands, work.results[::-1]))
    return site.shape(first[0]) or (), site.shape(last[0]) or ()


def borders_of(nodes: Sequence[ir.Node]) -> Borders:
    """What some nodes read from outside, and what is read of them there."""
    inside = set(nodes)
    read = dict.fromkeys(value for node in nodes for value in node.inputs if value is not None)
    operands = [v for v in read if v.producer() not in inside and constant_of(v) is None]
    results = [
        value
        for node in nodes
        for value in node.outputs
        if value.is_graph_output() or any(use.node not in inside for use in value.uses())
    ]
    return tuple(operands), tuple(results)
