"""Models for runtimes that read ONNX: the file as given, and as optimised for the runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from relayout.assign.terms import Terms
from relayout.backends.array_model import ArrayModel
from relayout.backends.candidates import Candidates, CompiledModel
from relayout.backends.fastest.compiling import compile_fastest, write_fastest
from relayout.backends.machine import cores
from relayout.backends.options import Compilation, CompileOptions
from relayout.backends.registry import Backend
from relayout.errors import RelayoutError
from relayout.graph.collector import paused_collector
from relayout.graph.io.defaults import without_defaults
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.save import save
from relayout.graph.io.sources import ModelSource
from relayout.optimizer.delivery import Stage
from relayout.optimizer.measuring import AS_GIVEN, candidates, words_of
from relayout.optimizer.rounds import best_form
from relayout.verify.interface import Interface, interface_of

FILE = "model.onnx"

OpenFile: TypeAlias = Callable[[Path, Interface, int], ArrayModel]
"""Makes a file ready to run on so many threads."""


@dataclass(frozen=True)
class EngineFiles:
    """How a runtime is given models."""

    title: str
    backend: Backend
    open_file: OpenFile

    @cached_property
    def terms(self) -> dict[str, Terms]:
        """What a model is optimised under, by way: for the target, with and without operators that
        attentions are raised to. Quantised parts keep what they round.
        """
        target = self.backend.target
        terms = Terms(target.objective, target, keeps_sums=True, recomputes=False)
        chosen = (each for each in candidates(terms) if each.objective is terms.objective)
        return {words_of(each): each for each in chosen}

    @property
    def candidates(self) -> Candidates:
        return Candidates((*self.terms, AS_GIVEN), self.build, self.open)

    def build(self, given: LoadedModel, way: str, options: CompileOptions, folder: Path) -> Path:
        """The file of one way."""
        if options.device != "cpu" or options.dtype is not None:
            raise RelayoutError(f"{self.title} runs models on a CPU, in their own types")
        loaded = without_defaults(given) if options.fix_defaults else given
        is_made = way != AS_GIVEN
        if is_made and loaded.frozen is not None:
            raise RelayoutError(f"it stays as given: {loaded.frozen}")
        if is_made:
            with paused_collector():
                terms = replace(self.terms[way], dims=options.dims or {})
                loaded = best_form(loaded, terms)
        place = folder / FILE
        save(loaded, place, changed=is_made or loaded is not given)
        return place

    def open(self, path: Path, options: CompileOptions) -> ArrayModel:
        interface = interface_of(path)
        if options.fix_defaults:
            interface = interface.without_defaults()
        return self.open_file(path, interface, options.threads or cores())

    def compile_model(
        self, source: ModelSource, options: CompileOptions, stage: Stage = lambda _: None
    ) -> CompiledModel:
        """A callable, verified unless that was not asked for."""
        return compile_fastest((self.backend,), source, options, stage)

    def write_module(
        self,
        source: ModelSource,
        output: str | PathLike[str],
        options: CompileOptions,
        stage: Stage = lambda _: None,
    ) -> Compilation:
        """An ONNX file, written only if it is verified in the runtime or nobody asked."""
        return write_fastest(self.backend, source, output, options, stage)
