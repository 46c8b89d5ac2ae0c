"""Searches for the smallest parts of two models that still differ.

Both models are run once with the tensors inside that both have by name as results. Where such a
tensor differs though those before it agree, its makers from there on are a smaller pair. Then nodes
that both parts have are left out one by one. What is kept is only what still differs when the parts
are compared as any two models.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx

from relayout.verify.cases import CaseFinder
from relayout.verify.interface import interface_of
from relayout.verify.numeric import compare
from relayout.verify.reduction.parts import TensorForm, cone, makers, part, without
from relayout.verify.runtimes import ONNX_RUNTIME, RefusedError, derived
from relayout.verify.verdict import NumericOptions, NumericVerdict

Array = np.ndarray[Any, Any]
Tensors = dict[str, Array]

# How far tensors inside may be apart to count as the same; what is kept is compared as usual.
TOLERANCE = 1e-4
# Pairs of parts that are compared for each way to make one smaller.
MOST_ENDS = 16


@dataclass(frozen=True)
class DifferingPair:
    """Two models that differ, and how."""

    before: onnx.ModelProto
    after: onnx.ModelProto
    verdict: NumericVerdict
    options: NumericOptions = field(default_factory=NumericOptions)

    @property
    def size(self) -> int:
        return len(self.before.graph.node) + len(self.after.graph.node)


@dataclass
class PairReduction:
    """Makes pairs smaller until there is no time left or nothing smaller differs."""

    options: NumericOptions
    deadline: float
    folder: Path
    tried: set[bytes] = field(default_factory=set)

    def smallest(self, pair: DifferingPair) -> DifferingPair:
        while time.monotonic() < self.deadline:
            smaller = next(filter(None, map(self._judged, self._candidates(pair))), None)
            if smaller is None or smaller.size >= pair.size:
                return pair
            pair = smaller
        return pair

    def _judged(self, models: tuple[onnx.ModelProto, onnx.ModelProto]) -> DifferingPair | None:
        """The pair, if it is new, there is time, and its models differ."""
        key = b"".join(model.SerializeToString(deterministic=True) for model in models)
        if key in self.tried or time.monotonic() > self.deadline:
            return None
        self.tried.add(key)
        paths = [self.folder / name for name in ("one.onnx", "other.onnx")]
        for model, path in zip(models, paths, strict=True):
            onnx.save(model, path)
        verdict = compare(paths[0], paths[1], self.options)
        differs = verdict.status == "differs"
        return DifferingPair(*models, verdict, self.options) if differs else None

    def _candidates(self, pair: DifferingPair) -> Iterator[tuple[onnx.ModelProto, onnx.ModelProto]]:
        tensors = self._shared_tensors(pair)
        if tensors is not None:
            yield from _between(pair, *tensors)
            yield from _left_out(pair, tensors[0])

    def _shared_tensors(self, pair: DifferingPair) -> tuple[Tensors, Tensors] | None:
        """What both models make of the same inputs, by the names that both have."""
        path = self.folder / "given.onnx"
        onnx.save(pair.before, path)
        interface = interface_of(path)
        shared = [n for n in makers(pair.before.graph) if n in makers(pair.after.graph)]
        found: list[Tensors] = []
        try:
            original = ONNX_RUNTIME.load(path, interface)
            finder = CaseFinder(original, interface, pair.options, pair.before, once=True)
            feeds = finder.find()[0].feeds
            for model in (pair.before, pair.after):
                wide = _with_outputs(model, shared)
                results = ONNX_RUNTIME.load(derived(wide, path), interface)(feeds)
                names = [output.name for output in wide.graph.output]
                pairs = zip(names, results, strict=True)
                found.append({n: r for n, r in pairs if isinstance(r, np.ndarray)})
        except (RefusedError, MemoryError):
            return None
        fed = {name: np.asarray(value) for name, value in feeds.items()}
        return {**fed, **found[0]}, {**fed, **found[1]}


def _with_outputs(model: onnx.ModelProto, names: list[str]) -> onnx.ModelProto:
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    known = {output.name for output in wide.graph.output}
    wide.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
    return wide


def _between(
    pair: DifferingPair, given: Tensors, made: Tensors
) -> Iterator[tuple[onnx.ModelProto, onnx.ModelProto]]:
    """Parts from tensors that agree to the first ones that do not, the smallest first."""
    shared = [name for name in given if name in made]
    agreed = {name for name in shared if _agree(given[name], made[name])}
    outputs = {output.name for output in pair.before.graph.output}
    ends = [
        name
        for name in shared
        if name not in agreed and (name in outputs or not _moved(given[name], made[name]))
    ]
    found = []
    for end in ends[:MOST_ENDS]:
        cuts = set[str]()
        for model in (pair.before, pair.after):
            nodes, met = cone(model.graph, end, agreed)
            made_here = {name for node in nodes for name in node.output}
            ports = {port.name for port in model.graph.input}
            cuts |= {n for n in met if (n in agreed and n not in made_here) or n in ports}
        inputs = {name: TensorForm.of(given[name]) for name in sorted(cuts) if name in given}
        forms = [TensorForm.of(tensors[end]) for tensors in (given, made)]
        models = part(pair.before, end, inputs, forms[0]), part(pair.after, end, inputs, forms[1])
        found.append((sum(len(model.graph.node) for model in models), models))
    yield from (models for _, models in sorted(found, key=lambda one: one[0]))


def _left_out(
    pair: DifferingPair, given: Tensors
) -> Iterator[tuple[onnx.ModelProto, onnx.ModelProto]]:
    """The pair without a node that both have, where one of its operands can take its place."""
    others = {node.SerializeToString() for node in pair.after.graph.node}
    end, *_ = pair.before.graph.output
    for node in pair.before.graph.node:
        if node.SerializeToString() not in others or len(node.output) != 1:
            continue
        output = node.output[0]
        form = given.get(output)
        for name in node.input:
            one = given.get(name)
            fits = form is not None and one is not None and _same_form(one, form)
            if fits and output != end.name:
                yield _trimmed(pair, output, name)


def _trimmed(
    pair: DifferingPair, output: str, instead: str
) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Both models with one tensor in the place of another, without what nobody reads any more."""
    made = []
    for model in (pair.before, pair.after):
        changed = without(model, output, instead)
        graph = changed.graph
        nodes, met = cone(graph, graph.output[0].name, ())
        kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        graph.ClearField("node")
        graph.node.extend(kept)
        held = [t for t in graph.initializer if t.name not in met]
        for tensor in held:
            graph.initializer.remove(tensor)
        made.append(changed)
    return made[0], made[1]


def _same_form(one: Array, other: Array) -> bool:
    return bool(one.shape == other.shape and one.dtype == other.dtype)


def _moved(one: Array, other: Array) -> bool:
    """Whether both hold the same numbers in other places: a name may be kept for another order."""
    if one.size != other.size or one.dtype != other.dtype:
        return bool(one.dtype == other.dtype)
    return _agree(np.sort(one, axis=None), np.sort(other, axis=None))


def _agree(one: Array, other: Array) -> bool:
    if not _same_form(one, other):
        return False
    if one.dtype.kind not in "fc":
        return bool(np.array_equal(one, other))
    scale = float(np.max(np.abs(one), initial=0.0, where=np.isfinite(one)))
    return bool(np.allclose(one, other, TOLERANCE, TOLERANCE * scale, equal_nan=True))


def reduced(
    before: Path, after: Path, options: NumericOptions, seconds: float
) -> DifferingPair | None:
    """The smallest parts of two files found in some seconds that differ; None if these do not."""
    verdict = compare(before, after, options)
    if verdict.status != "differs":
        return None
    pair = DifferingPair(onnx.load(before), onnx.load(after), verdict, options)
    with TemporaryDirectory(prefix="relayout-") as folder:
        deadline = time.monotonic() + seconds
        return PairReduction(_without_sizes(options), deadline, Path(folder)).smallest(pair)


def _without_sizes(options: NumericOptions) -> NumericOptions:
    """The options for parts, which have inputs and lengths of their own."""
    return NumericOptions(tolerance=options.tolerance, seed=options.seed)
