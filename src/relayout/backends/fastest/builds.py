"""The ways to run a model that are built here, each once and only if it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from relayout.backends.fastest.opening import candidates_of
from relayout.backends.fastest.ranking import RunWay
from relayout.backends.options import CompileOptions
from relayout.backends.registry import BACKENDS, Backend
from relayout.errors import RelayoutError
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.save import staged


@dataclass(slots=True)
class Builds:
    """A model, and what was made of it so far."""

    given: LoadedModel
    path: Path
    """The given model as a file."""
    folder: Path
    built: dict[RunWay, Path] = field(default_factory=dict)

    def of(self, way: RunWay, options: CompileOptions) -> Path:
        """What one way makes of the model; a `RelayoutError` says why it makes nothing."""
        if way not in self.built:
            place = self.folder / str(len(self.built))
            place.mkdir(exist_ok=True)
            build = candidates_of(way.backend).build
            self.built[way] = build(self.given, way.name, options, place)
        return self.built[way]


@contextmanager
def builds_of(given: LoadedModel) -> Iterator[Builds]:
    """A place to build in, which goes away again."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="relayout-")))
        path = given.path
        if path is None:
            place = staged(given, folder / "given.onnx", changed=False)
            path = stack.enter_context(place).path
        yield Builds(given, path, folder)


def installed_ways(backends: Sequence[Backend]) -> tuple[RunWay, ...]:
    """All ways of backends that are installed and take part."""
    installed = [each for each in backends if each.is_installed]
    found = [(each, each.candidates) for each in installed]
    ways = tuple(
        RunWay(backend.name, name)
        for backend, candidates in found
        if candidates is not None
        for name in candidates.ways
    )
    if not ways:
        raise _no_way(backends)
    return ways


def _no_way(backends: Sequence[Backend]) -> RelayoutError:
    absent = [each for each in backends if not each.is_installed]
    for each in absent:
        each.require()
    if absent:
        names = ", ".join(each.name for each in absent)
        return RelayoutError(f"none of the backends is installed: {names}")
    names = ", ".join(each.name for each in backends)
    return RelayoutError(f"not timed beside other backends: {names}")


def all_backends() -> tuple[Backend, ...]:
    return tuple(BACKENDS[name] for name in BACKENDS)
