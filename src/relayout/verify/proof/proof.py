"""Proofs that two models are one function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx

from relayout.verify.messages import message_of
from relayout.verify.proof.canonical import Canonical
from relayout.verify.proof.constants import Numbers
from relayout.verify.proof.contents import Contents
from relayout.verify.proof.graphs import LocalValues, ModelReader, input_value, versions_of
from relayout.verify.proof.lengths import Length, is_plain, is_stable, replaced, solved
from relayout.verify.proof.stored import DataFolder, StoredPlace, places_of, shared_places
from relayout.verify.proof.table import TermTable, TermValue
from relayout.verify.proof.verdict import Ledger, ModelProof, OutputProof
from relayout.verify.proof.views import exact

# How often the first model is read again with what its lengths were found to be.
READINGS = 6
# From this version of the format on, an initialiser that is also an input is a default value.
DEFAULTS_SINCE_IR = 4
DEFAULTS_KEPT = "inputs with a default keep it"


@dataclass(frozen=True)
class _Granted:
    """What a proof may take for granted, and whether rounding may change."""

    loose: bool = False
    guess: bool = False
    defaults: bool = False


@dataclass
class ReadModel:
    """A model, with its constants once they are read."""

    model: onnx.ModelProto
    data: DataFolder
    numbers: dict[str, Numbers] = field(default_factory=dict)
    shared: frozenset[StoredPlace] = frozenset()
    """Where constants lie that the other model has too, so that they need not be read."""

    @classmethod
    def of(cls, path: Path) -> ReadModel:
        return cls(message_of(path), DataFolder.of(path))

    @classmethod
    def held_by(cls, model: onnx.ModelProto, folder: Path) -> ReadModel:
        """A model in memory, whose data lies in a folder if it lies in files."""
        return cls(model, DataFolder.at(folder))

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

    def fixed(self, terms: _Granted) -> set[str]:
        """The initialisers that are constants."""
        return self.held if terms.defaults else self.held - self.defaults


@dataclass
class _ReadAsTerms:
    """A model as terms."""

    table: TermTable
    outputs: dict[str, TermValue]
    not_known: dict[str, str]
    not_followed: dict[str, None]
    values: Mapping[str, TermValue] = field(default_factory=dict)
    """All values of the main graph by name."""

    @classmethod
    def of(
        cls, source: ReadModel, table: TermTable, fixed: set[str], *, first: bool
    ) -> _ReadAsTerms:
        """The model read with these initialisers as constants, though they may be inputs too."""
        model, graph = source.model, source.model.graph
        functions = {(f.domain, f.name, getattr(f, "overload", "")): f for f in model.functions}
        program = ModelReader(
            table, functions, source.data, source.shared, source.numbers, first=first
        )
        versions = versions_of(model.opset_import)
        given = {
            port.name: input_value(table, port, f"input {port.name!r}")
            for port in graph.input
            if port.name not in fixed
        }
        names = [output.name for output in graph.output]
        local = LocalValues(program, versions)
        outputs = dict(zip(names, local.run(graph, given), strict=True))
        return cls(table, outputs, program.not_known, program.not_followed, local.values)


@dataclass(frozen=True)
class Foreseen:
    """The first model as it was read before there was a second one."""

    before: Path
    fix_defaults: bool
    model: ReadModel
    reading: _ReadAsTerms

    @classmethod
    def of(cls, before: Path, new: Container[str], *, fix_defaults: bool = False) -> Foreseen:
        """`new` are the constants that the second model is expected to store anew."""
        model = ReadModel.of(before)
        model.shared = frozenset(places_of(model.model, model.data, without=new))
        terms = _Granted(defaults=fix_defaults)
        return cls(before, fix_defaults, model, _settled(model, TermTable(), terms))

    def is_of(self, before: Path, *, fix_defaults: bool) -> bool:
        return (self.before, self.fix_defaults) == (before, fix_defaults)


def prove(
    before: Path, after: Path, *, fix_defaults: bool = False, foreseen: Foreseen | None = None
) -> ModelProof:
    """Tries to prove that both files compute the same, taking as little for granted as can be.

    With `fix_defaults` inputs that have defaults are constants. What was foreseen of the first file
    is taken if the second one is as was expected.
    """
    if foreseen is not None and not foreseen.is_of(before, fix_defaults=fix_defaults):
        foreseen = None
    first = ReadModel.of(before) if foreseen is None else foreseen.model
    second = ReadModel.of(after)
    shared = shared_places((first.model, first.data), (second.model, second.data))
    if foreseen is not None and first.shared != shared:
        return prove(before, after, fix_defaults=fix_defaults)
    begun = None if foreseen is None else foreseen.reading
    contents = Contents() if begun is None else begun.table.contents
    if shared:
        apart = replace(first, shared=shared), replace(second, shared=shared)
        found = _proof(*apart, contents, begun, fix_defaults=fix_defaults)
        if found.holds:
            return found
        first, begun = replace(first, shared=frozenset()), None
    return _proof(first, second, contents, begun, fix_defaults=fix_defaults)


def prove_models(before: onnx.ModelProto, after: onnx.ModelProto) -> ModelProof:
    """The same for models that hold all their numbers."""
    first, second = (ReadModel.held_by(model, Path()) for model in (before, after))
    return _proof(first, second, Contents(), None, fix_defaults=False)


Meaning = tuple[int, int]
"""A number for what a tensor holds, and one for what it holds in the order it is stored in."""


def meanings(before: ReadModel, after: ReadModel) -> tuple[dict[str, Meaning], dict[str, Meaning]]:
    """By name, what the values of two main graphs mean, alike in both up to rounding."""
    terms = _Granted(loose=True)
    first = _settled(before, TermTable(ledger=Counter()), terms)
    second = _ReadAsTerms.of(after, first.table, before.fixed(terms), first=False)
    numbers: dict[Hashable, int] = {}

    def meaning(value: TermValue) -> Meaning:
        key = exact(first.table, value)
        return value.term, numbers.setdefault(key, len(numbers))

    named = [
        {name: meaning(value) for name, value in reading.values.items() if name}
        for reading in (first, second)
    ]
    return named[0], named[1]


def _proof(
    first: ReadModel,
    second: ReadModel,
    contents: Contents,
    begun: _ReadAsTerms | None,
    *,
    fix_defaults: bool,
) -> ModelProof:
    """A proof for models whose constants, as far as they were read, are among these contents.

    `begun` is the first model as it is read to begin with, if it was.
    """
    canonical: dict[Hashable, Canonical] = {} if begun is None else begun.table.canonical
    best: ModelProof | None = None
    known: Mapping[str, Length] = {}
    guesses = False
    for terms in _attempts(first, fix_defaults=fix_defaults):
        if terms.guess and not guesses:
            continue
        ledger = Counter[str]() if terms.loose else None
        table = TermTable(ledger=ledger, canonical=canonical, contents=contents)
        reading, begun = begun or _settled(first, table, terms), None
        if not terms.guess:
            known = reading.table.facts
            guesses = bool(reading.table.guesses)
        conditions = _beyond(reading.table.facts, known) if terms.guess else ()
        conditions += (DEFAULTS_KEPT,) if terms.defaults and not fix_defaults else ()
        other = _ReadAsTerms.of(second, reading.table, first.fixed(terms), first=False)
        found = _compared(reading, other, conditions)
        best = found if best is None or found.proved > best.proved else best
        if best.holds:
            break
    assert best is not None
    return best


def _beyond(facts: Mapping[str, Length], known: Mapping[str, Length]) -> tuple[str, ...]:
    """The lengths that were taken to be equal, in words."""
    return tuple(f"{one} = {other}" for one, other in facts.items() if one not in known)


def _attempts(source: ReadModel, *, fix_defaults: bool) -> Iterator[_Granted]:
    for loose in (False, True):
        yield _Granted(loose, defaults=fix_defaults)
        yield _Granted(loose, guess=True, defaults=fix_defaults)
        if source.defaults and not fix_defaults:
            yield _Granted(loose, defaults=True)


def _settled(source: ReadModel, table: TermTable, terms: _Granted) -> _ReadAsTerms:
    """The first model, read until nothing more is found about its lengths."""
    for _ in range(READINGS):
        reading = _ReadAsTerms.of(source, table, source.fixed(terms), first=True)
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
        if not is_stable(left) or not is_stable(right):
            continue
        found = None if left == right else solved(left, right)
        if found is None:
            continue
        name, length = found
        result = {one: replaced(other, {name: length}) for one, other in result.items()}
        result[name] = length
    return result


def _compared(first: _ReadAsTerms, second: _ReadAsTerms, conditions: tuple[str, ...]) -> ModelProof:
    table = first.table
    not_known = {**first.not_known, **second.not_known}
    outputs = tuple(
        OutputProof(name, exact(table, value) == exact(table, second.outputs.get(name)))
        for name, value in first.outputs.items()
    )
    ledger = Ledger(dict(sorted((table.ledger or {}).items())), table.near.error)
    return ModelProof(
        outputs,
        tuple(dict.fromkeys(not_known.values())),
        tuple(first.not_followed | second.not_followed),
        conditions,
        ledger,
    )
