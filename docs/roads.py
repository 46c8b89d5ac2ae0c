"""The roads of a model through the package, as stops in the order in which a run reaches them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple


class Stop(NamedTuple):
    """A function on a road, and what is done there."""

    file: str
    """Below `src/relayout`."""
    name: str
    what: str
    is_inner: bool = False
    """Whether it is reached once for each attempt, group or candidate."""


OPTIMIZE = (
    Stop("cli/__init__.py", "main", "the command is found"),
    Stop("cli/optimize.py", "run", "options become arguments of relayout.optimize"),
    Stop("optimizer/optimize.py", "optimize", "this road, one call after the other"),
    Stop("graph/io/load.py", "load", "the file is read and checked, once"),
    Stop("optimizer/prepare.py", "as_asked", "--opset and --fix-defaults, if asked for"),
    Stop("optimizer/prepare.py", "prepare", "shapes learned, local rules applied, once a round"),
    Stop("optimizer/rounds.py", "in_rounds", "rounds; from the second on, of the result before"),
    Stop("optimizer/attempts.py", "Search.best", "attempts under one Budget; for each"),
    Stop("graph/io/model.py", "LoadedModel.clone", "a copy of the prepared model", is_inner=True),
    Stop("assign/formulate.py", "formulate", "Transposes dissolve: LayoutProblem", is_inner=True),
    Stop("targets/target.py", "Target.rule_of", "rules of ops/, or its own", is_inner=True),
    Stop("assign/strategies/exact.py", "solve", "or another strategy: Assignment", is_inner=True),
    Stop("assign/apply.py", "apply", "the graph in the chosen orders", is_inner=True),
    Stop("rewrite/worklist.py", "rewrite_model", "local rules clean up", is_inner=True),
    Stop("ops/measure.py", "measure", "Transposes and bytes; kept or dropped", is_inner=True),
    Stop("optimizer/delivery.py", "deliver", "the best one, or the given model if none is better"),
    Stop("graph/io/save.py", "staged", "written beside its place, unchanged parts as they were"),
    Stop("verify/isolated.py", "Standby.__call__", "both files run, in a process of its own"),
    Stop("optimizer/result.py", "Result.record", "what was done, as plain data"),
    Stop("report/text.py", "run_text", "and as text, or as JSON"),
    Stop("graph/io/save.py", "Staged.commit", "renamed into place after verdict and report"),
    Stop("optimizer/settling.py", "settled", "if the verdict is open: less is changed, or nothing"),
)

COMPILE = (
    Stop("cli/__init__.py", "main", "the command is found"),
    Stop("cli/compile.py", "run", "options become arguments of the backend"),
    Stop("backends/registry.py", "Backend.writer", "the backend of --target, torch unless given"),
    Stop("backends/torch/compiling.py", "write_module", "this road; compile_model from Python"),
    Stop("graph/io/load.py", "load", "the file is read and checked, once"),
    Stop("backends/expanding.py", "expanded", "functions in the place of their calls"),
    Stop("optimizer/rounds.py", "best_form", "as for optimize, without delivering"),
    Stop("optimizer/prepare.py", "prepare", "as for optimize, for the target torch"),
    Stop("optimizer/rounds.py", "in_rounds", "as for optimize"),
    Stop("optimizer/attempts.py", "Search.best", "as for optimize; the best is taken on"),
    Stop("backends/torch/choose/tuning.py", "tuned", "unless --plain: each group gets a kernel"),
    Stop("fusion/partition.py", "partition", "groups of nodes that may share a kernel"),
    Stop("backends/torch/choose/plan.py", "Plan.library_steps", "convolutions, products; for each"),
    Stop(
        "backends/torch/providers/library_provider.py",
        "LibraryProvider.build",
        "this and other providers offer candidates",
        is_inner=True,
    ),
    Stop("backends/torch/choose/bench.py", "Bench.know", "timed, if not known here", is_inner=True),
    Stop(
        "backends/torch/choose/memory_format.py",
        "with_memory_formats",
        "channels first or last: a LayoutProblem in nanoseconds",
    ),
    Stop("backends/torch/choose/plan.py", "Plan.with_regions", "runs of steps as C++ kernels"),
    Stop("backends/torch/choose/plan.py", "Plan.with_kernels", "what is left, by Inductor"),
    Stop(
        "backends/torch/choose/joined.py",
        "joined_where_faster",
        "on CUDA all steps as one function, if faster",
    ),
    Stop("backends/torch/modules/source.py", "write_source", "the text of the module"),
    Stop("backends/torch/modules/weights.py", "write_weights", "its weights beside it"),
    Stop(
        "backends/torch/verification.py",
        "compare_written",
        "the module and the given file run, in a process of its own",
    ),
    Stop("backends/torch/compiling.py", "_put", "renamed into place after the verdict"),
)


def road_text(stops: tuple[Stop, ...], start: str, end: str) -> str:
    """A road as a picture: a line for each stop, inner ones to the right of a second line."""
    return "\n".join((start, *_lines(stops), f"▼\n{end}"))


def _lines(stops: tuple[Stop, ...]) -> Iterator[str]:
    ends = [stop.is_inner and not after.is_inner for stop, after in pairwise(stops)]
    places = [_place(stop, is_last=end) for stop, end in zip(stops, (*ends, False), strict=True)]
    width = max(map(len, places))
    for place, stop in zip(places, stops, strict=True):
        yield f"{place:{width}}  {stop.what}"


def _place(stop: Stop, *, is_last: bool) -> str:
    line = f"│  {'└' if is_last else '├'}─" if stop.is_inner else "├─"
    return f"{line} {stop.file.removeprefix('backends/torch/')} {stop.name}"


def optimize_text() -> str:
    return road_text(OPTIMIZE, "relayout optimize in.onnx -o out.onnx", "out.onnx")


def compile_text() -> str:
    return road_text(COMPILE, "relayout compile in.onnx -o module.py", "module.py, .safetensors")
