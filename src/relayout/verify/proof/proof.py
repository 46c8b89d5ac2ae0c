"""Proofs that two models are one function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from relayout.verify.proof.canonical import Canonical
from relayout.verify.proof.constants import Numbers
from relayout.verify.proof.graphs import Program, Scope, input_value
from relayout.verify.proof.lengths import Length, is_plain, replaced, solved
from relayout.verify.proof.table import Table, Value
from relayout.verify.proof.verdict import Ledger, OutputProof, Proof
from relayout.verify.proof.views import exact

# How often the first model is read again with what its lengths were found to be.
READINGS = 6
# From this version of the format on, an initialiser that is also an input is a default value.
DEFAULTS_SINCE_IR = 4
DEFAULTS_KEPT = "inputs with a default keep it"


@dataclass(frozen=True)
class _Terms:
    """What a proof may take for granted, and whether rounding may change."""

    loose: bool = False
    guess: bool = False
    defaults: bool = False


@dataclass
class Source:
    """A model, with its constants once they are read."""

    model: onnx.ModelProto
    folder: Path
    numbers: dict[str, Numbers] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path) -> Source:
        return cls(onnx.load(path, load_external_data=False), path.parent)

    @property
    def held(self) -> set[str]:
        """The names of initialisers."""
        graph = self.model.graph
        dense = {tensor.name for tensor in graph.initializer}
        return dense | {tensor.values.name for tensor in graph.sparse_initializer}

    @property
    def defaults(self) -> set[str]:
        """The inputs that have a default value, which a caller may replace."""
        if self.model.ir_version < DEFAULTS_SINCE_IR:
            return set()
        return self.held & {port.name for port in self.model.graph.input}

    def fixed(self, terms: _Terms) -> set[str]:
        """The initialisers that are constants."""
        return self.held if terms.defaults else self.held - self.defaults


@dataclass
class _Reading:
    """A model as terms."""

    table: Table
    outputs: dict[str, Value]
    not_known: dict[str, str]

    @classmethod
    def of(cls, source: Source, table: Table, fixed: set[str]) -> _Reading:
        """The model read with these initialisers as constants, though they may be inputs too."""
        model, graph = source.model, source.model.graph
        functions = {(f.domain, f.name, getattr(f, "overload", "")): f for f in model.functions}
        program = Program(table, functions, source.folder, source.numbers)
        opsets = ((o.domain.replace("ai.onnx", "", 1), o) for o in model.opset_import)
        versions = {o.domain if short else "": o.version for short, o in opsets}
        given = {
            port.name: input_value(table, port, f"input '{port.name}'")
            for port in graph.input
            if port.name not in fixed
        }
        names = [output.name for output in graph.output]
        values = Scope(program, versions).run(graph, given)
        return cls(table, dict(zip(names, values, strict=True)), program.not_known)


def prove(before: Path, after: Path) -> Proof:
    """Tries to prove that both files compute the same, with as little taken for granted as can be."""
    return _proof(Source.of(before), Source.of(after))


def prove_models(before: onnx.ModelProto, after: onnx.ModelProto) -> Proof:
    """The same for models that hold all their numbers."""
    return _proof(Source(before, Path()), Source(after, Path()))


def _proof(first: Source, second: Source) -> Proof:
    canonical: dict[Hashable, Canonical] = {}
    best: Proof | None = None
    known: Mapping[str, Length] = {}
    guesses = False
    for terms in _attempts(first):
        if terms.guess and not guesses:
            continue
        table = Table(ledger=Counter() if terms.loose else None, canonical=canonical)
        reading = _settled(first, table, terms)
        if not terms.guess:
            known = reading.table.facts
            guesses = bool(reading.table.guesses)
        conditions = _beyond(reading.table.facts, known) if terms.guess else ()
        conditions += (DEFAULTS_KEPT,) if terms.defaults else ()
        found = _compared(
            reading, _Reading.of(second, reading.table, first.fixed(terms)), conditions
        )
        best = found if best is None or found.proved > best.proved else best
        if best.holds:
            break
    assert best is not None
    return best


def _beyond(facts: Mapping[str, Length], known: Mapping[str, Length]) -> tuple[str, ...]:
    """The lengths that were taken to be equal, in words."""
    return tuple(f"{one} = {other}" for one, other in facts.items() if one not in known)


def _attempts(source: Source) -> Iterator[_Terms]:
    for loose in (False, True):
        yield _Terms(loose)
        yield _Terms(loose, guess=True)
        if source.defaults:
            yield _Terms(loose, defaults=True)


def _settled(source: Source, table: Table, terms: _Terms) -> _Reading:
    """The first model, read until nothing more is found about its lengths."""
    for _ in range(READINGS):
        reading = _Reading.of(source, table, source.fixed(terms))
        guesses = [pair for pair in table.guesses if terms.guess and all(map(is_plain, pair))]
        facts = _with_facts(table.facts, guesses or table.equations)
        if facts == table.facts:
            break
        table = table.anew(facts)
    return reading


def _with_facts(
    facts: Mapping[str, Length], equations: Iterable[tuple[Length, Length]]
) -> dict[str, Length]:
    result = dict(facts)
    for pair in equations:
        left, right = (replaced(side, result) for side in pair)
        found = None if left == right else solved(left, right)
        if found is None:
            continue
        name, length = found
        result = {one: replaced(other, {name: length}) for one, other in result.items()}
        result[name] = length
    return result


def _compared(first: _Reading, second: _Reading, conditions: tuple[str, ...]) -> Proof:
    table = first.table
    not_known = {**first.not_known, **second.not_known}
    outputs = tuple(
        OutputProof(name, exact(table, value) == exact(table, second.outputs.get(name)))
        for name, value in first.outputs.items()
    )
    ledger = Ledger(dict(sorted((table.ledger or {}).items())), table.near.error)
    return Proof(outputs, tuple(dict.fromkeys(not_known.values())), conditions, ledger)
