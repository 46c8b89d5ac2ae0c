"""Optimises a model: read, tried in several ways, the best one verified and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING

from relayout.assign.strategies.registry import (
    DEFAULT_SECONDS,
    EXACT,
    Budget,
    Strategy,
    strategy_of,
)
from relayout.assign.terms import Terms
from relayout.errors import RelayoutError
from relayout.graph.collector import paused_collector
from relayout.graph.io.destination import Output
from relayout.graph.io.load import load
from relayout.graph.io.merge import stored_anew
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.sources import ModelSource
from relayout.ops.measure import Objective
from relayout.optimizer.asked_form import destinations, within_given_rank
from relayout.optimizer.asked_layouts import in_asked_layouts
from relayout.optimizer.attempts import ROUNDING_SHOWS, Search
from relayout.optimizer.delivery import Comparing, Stage, check_names
from relayout.optimizer.offers import offers
from relayout.optimizer.prepare import Prepared, as_asked, prepare
from relayout.optimizer.report_files import ReportFiles
from relayout.optimizer.result import Result, verdict_text
from relayout.optimizer.road import Ready, Road
from relayout.optimizer.settling import settled
from relayout.targets.prices.table import RuntimePrices
from relayout.targets.profiles.profile import Profile
from relayout.targets.target import (
    ONNX,
    Target,
    asked_objective,
    check_opset,
    target_of,
    with_prices,
)
from relayout.verify.isolated import Standby
from relayout.verify.verdict import NumericOptions

if TYPE_CHECKING:
    from relayout.optimizer.measuring import Measuring

MORE_AXES = "tensors have more axes than those of the given model; --max-rank N forbids that"
ROUGH = "what changes rounding was left out, since quantisers turned it into whole steps"


@paused_collector()
def optimize(
    source: ModelSource,
    output: Output | None = None,
    *,
    target: str | Target = ONNX,
    keep: Sequence[str] = (),
    einsum: bool | None = None,
    keep_size: bool = False,
    max_rank: int | None = None,
    profile: str | PathLike[str] | Profile | None = None,
    strategy: str | Strategy = EXACT,
    minimize: str | Objective | None = None,
    prices: str | PathLike[str] | RuntimePrices | None = None,
    budget: float = DEFAULT_SECONDS,
    free_inputs: bool = False,
    free_outputs: bool = False,
    input_layouts: Mapping[str, str] | None = None,
    output_layouts: Mapping[str, str] | None = None,
    opset: int | None = None,
    fix_defaults: bool = False,
    inline_functions: bool = False,
    verify: bool = True,
    inputs: NumericOptions | None = None,
    certificate: Output | None = None,
    report: Output | None = None,
    model_explorer: str | PathLike[str] | None = None,
    suggest: bool = False,
    measure: Measuring | None = None,
    hard_links: bool = False,
    ready: Ready = lambda _: None,
    stage: Stage = lambda _: None,
    comparing: Comparing | None = None,
) -> Result:
    """Choose the order of every tensor, compare the numbers, write the result to `output`.

    `target`, `strategy` and `minimize` are names or values. `keep` selects nodes that stay as they
    are: by name, `op:LRN`, `rank:3` or `device:cpu`. `einsum` lets a product of matrices be stated
    as Einsum, which reads its factors in any order; left open it does so where Transposes are
    counted and only standard operators may be used. `keep_size` forbids to store a
    constant in two orders, where one of its readers could have another than the rest. `max_rank` is
    the most axes that a tensor of the result has, if none of the given model has more; left open it
    is what the given model has, unless Transposes are counted and fewer are left with more axes.
    `profile` names a device, or a file, whose limits the result keeps where the given model does.
    Only the strategy "exact" proves its choice
    least for the variants offered. `minimize` is "bytes" (fewest bytes moved by Transposes),
    "count" (fewest Transposes) or "time" (least time by the prices of the target, which is the
    default for a target that has prices, and "bytes" for others, by which on target "onnx" a result
    that is predicted to take longer than the model given is not kept). `prices` is a table of them,
    or the path of one, in place of the one that comes with the target. After `budget` seconds of
    choosing, all attempts together, the best found is taken. `free_inputs` and `free_outputs` let
    the orders of the model's own inputs and outputs change; the change is reported in the notices.
    `input_layouts` and `output_layouts` give inputs and outputs, by name, another layout such as
    "NHWC"; the model as given then counts with a Transpose at each. `opset` brings the model to a
    newer
    opset first: from 23 on Attention is an operator. `fix_defaults` makes constants of inputs that
    have a default, which removes them from the inputs. `inline_functions` writes what functions of
    the model do in the place of their calls, for runtimes that have none.

    `output` is a path or a binary file open for writing. Nothing is written if the numbers differ.
    Where they cannot be compared and nothing is proved, nodes that the proof does not follow are
    kept as given; if that does not settle it, the model is written as it came, with the reason, and
    nothing is written only where something was asked of its form (its opset, defaults, functions,
    orders at its border). A model for which nothing better was found is written as it came, byte
    for byte. The proof of the choice is written to `certificate` together with the model, and a
    page for browsers to `report`, with the graphs before and after; both graphs, for Model
    Explorer, into the folder `model_explorer`. With `suggest`, options are
    tried that might leave fewer Transposes, and those that do are reported.
    With `measure`, models made by every objective, with attentions raised to operators and without,
    take turns in the runtime of the target; the fastest is kept, or the given model if none is
    faster. With `hard_links`, data files that have hard links are read, and unchanged ones are
    linked into the folder of the result. `ready` is called with the result before anything takes
    its place: if it raises, nothing does.
    """
    inputs = replace(inputs or NumericOptions(), fix_defaults=fix_defaults)
    solver = strategy_of(strategy)
    place, proof = destinations(output, certificate, report, source, solver)
    reports = ReportFiles.of(report, model_explorer)
    priced = with_prices(target, prices)
    objective = asked_objective(priced, minimize)
    runtime = target_of(
        priced,
        keep,
        einsum=einsum,
        keep_size=keep_size,
        objective=objective,
        max_rank=max_rank,
        profile=profile,
    )
    check_opset(runtime, opset)
    prefers = minimize is None and objective is not Objective.TIME
    frees = free_inputs, free_outputs
    terms = Terms(objective, runtime, inputs.dims, *frees, no_figure_grows=prefers)
    if measure is not None:
        from relayout.optimizer.measuring import check_measurable

        check_measurable(terms)
    stage("reading")
    given = load(source, allow_hard_links=hard_links)
    if input_layouts or output_layouts:
        if proof is not None:
            raise RelayoutError("a certificate is about the interface as given, not other layouts")
        given = in_asked_layouts(given, input_layouts or {}, output_layouts or {})
    check_names(given, inputs)
    asked = as_asked(given, opset, fix_defaults=fix_defaults)
    compared = inputs if verify else None
    if inline_functions and proof is not None:
        raise RelayoutError("a certificate is about a model with its functions")
    standby = Standby()
    # Nothing runs beside what is timed.
    starts = verify and comparing is None and measure is None
    road = Road(
        *(given, place, proof, reports, compared, ready, stage, comparing or standby),
        found_better=partial(_stand_by, standby, given, inputs) if starts else lambda _: None,
        fix_defaults=fix_defaults,
        inlines=inline_functions,
        reforms=asked is not given or bool(input_layouts or output_layouts),
    )
    if asked.frozen is not None:
        return road.copied(terms, asked.frozen)
    asked.notices.extend(runtime.check_gate(asked.ir))
    unlimited, terms = terms, within_given_rank(terms, asked)
    stage("optimising")
    searching = _Searching(asked, solver, budget)
    if measure is not None:
        return _fastest(road, searching, terms, inputs, measure)
    with standby:
        return _best(road, searching, terms, unlimited, suggest=suggest)


def _stand_by(
    standby: Standby, given: LoadedModel, inputs: NumericOptions, made: LoadedModel
) -> None:
    """Let the process that compares start, and read what it can of the given model."""
    standby.start()
    if given.path is not None:
        standby.foresee(given.path, stored_anew(made), inputs)


def _best(
    road: Road, searching: _Searching, terms: Terms, unlimited: Terms, *, suggest: bool
) -> Result:
    """The best of all attempts that computes the same."""
    search, terms, result = _least_axes(road, searching, terms, unlimited)
    if suggest:
        road.stage("trying other options")
        result = _with_offers(result, searching, terms)
    result = road.handed_over(result)
    for careful in terms.with_care:
        if result.shows_rounding:
            search.drop_kept(ROUNDING_SHOWS)
            result = road.finished(search, careful, ROUGH)
    return settled(road, searching.of, result)


def _least_axes(
    road: Road, searching: _Searching, terms: Terms, unlimited: Terms
) -> tuple[Search, Terms, Result]:
    """What is made within the axes given; where Transposes are counted, fewer come first."""
    search = searching.of(terms)
    result = road.made(search, terms)
    if terms == unlimited or terms.objective is not Objective.COUNT or not result.after.transposes:
        return search, terms, result
    other = searching.of(unlimited)
    wider = road.made(other, unlimited, MORE_AXES)
    if wider.after.transposes < result.after.transposes:
        return other, unlimited, wider
    return search, terms, result


@dataclass(frozen=True, slots=True)
class _Searching:
    """Starts searches for a model; those for one target share what is prepared."""

    asked: LoadedModel
    strategy: Strategy
    budget: float
    prepared: list[tuple[Target, Prepared]] = field(default_factory=list)

    def of(self, terms: Terms) -> Search:
        known = (prepared for target, prepared in self.prepared if target == terms.target)
        prepared = next(known, None)
        if prepared is None:
            prepared = prepare(self.asked, terms.target, terms.dims)
            self.prepared.append((terms.target, prepared))
        return Search(prepared, self.strategy, Budget(self.budget))


def _fastest(
    road: Road,
    searching: _Searching,
    terms: Terms,
    inputs: NumericOptions,
    measuring: Measuring,
) -> Result:
    """The candidate that is the fastest in the target's runtime and computes the same."""
    from relayout.optimizer.measuring import candidates, ranked, with_kept, words_of

    results = {
        words_of(candidate): road.made(searching.of(candidate), candidate)
        for candidate in candidates(terms)
    }
    road.stage("measuring")
    order, measured = ranked(road.given, results, inputs, measuring)
    refusals: list[str] = []
    for words in order:
        kept = replace(results[words], measured=with_kept(measured, words))
        kept.loaded.notices.extend(refusals)
        result = road.handed_over(kept)
        if result.accepted:
            return result
        verdict = verdict_text(result.verdict, changed=True)
        refusals.append(f"{words} is faster, but was not delivered: {verdict}")
    first = results[words_of(terms)]
    kept = road.as_given(first)
    kept.loaded.notices[:] = [*road.given.notices, *refusals]
    return road.handed_over(replace(kept, least=False, measured=measured))


def _with_offers(result: Result, searching: _Searching, terms: Terms) -> Result:
    """The result with what would leave fewer Transposes than it has."""
    found = offers(
        *(searching.asked, terms, searching.strategy, searching.budget, result.record().left),
        has_attention=bool(result.spelt_out),
        gave_up=result.choose.terms.objective is not terms.objective,
    )
    return replace(result, offers=found)
