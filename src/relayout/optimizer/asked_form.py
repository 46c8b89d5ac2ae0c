"""What is asked of the form of a result: how many axes, functions or none, and where it goes."""

from __future__ import annotations

from dataclasses import replace

from relayout.assign.strategies.registry import Strategy
from relayout.assign.terms import Terms
from relayout.errors import RelayoutError
from relayout.graph.io.destination import Destination, Output, check_apart
from relayout.graph.io.inline import without_functions
from relayout.graph.io.load import reloaded
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.save import to_proto
from relayout.graph.io.sources import ModelSource
from relayout.ops.measure import most_axes
from relayout.optimizer.prepare import measured_by
from relayout.optimizer.result import Result

WRITTEN_OUT = "functions are written out, so their Transposes count as those of the model"


def written_out(result: Result) -> Result:
    """A result whose file has no functions, as some runtimes need it."""
    loaded = result.loaded
    if not loaded.source.functions and not loaded.ir.functions:
        return result
    made = reloaded(loaded, without_functions(to_proto(loaded)))
    terms = result.choose.terms
    made.notices[:] = [*loaded.notices, WRITTEN_OUT]
    return replace(result, loaded=made, changed=True, after=measured_by(terms, made.ir))


def within_given_rank(terms: Terms, asked: LoadedModel) -> Terms:
    """The terms with a limit on axes: unless asked for more, those of the given model."""
    if terms.target.max_rank is not None:
        return terms
    return replace(terms, target=replace(terms.target, max_rank=most_axes(asked.ir)))


def destinations(
    output: Output | None,
    certificate: Output | None,
    report: Output | None,
    source: ModelSource,
    strategy: Strategy,
) -> tuple[Destination | None, Destination | None]:
    """Where the model and its proof go, found to be places that can be written to."""
    beside = {"certificate": certificate, "report": report}
    check_apart((source,), beside)
    check_apart((), {"model": output, **beside})
    place = None if output is None else Destination.of(output)
    if certificate is None:
        return place, None
    if not strategy.proves:
        raise RelayoutError("a certificate needs the exact strategy: only that one proves anything")
    proof = Destination.of(certificate)
    if place is not None and proof.is_same(place):
        raise RelayoutError("the model and the certificate would go to the same place")
    return place, proof
