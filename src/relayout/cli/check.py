"""relayout check: fail if models have more Transposes than allowed, or do not fit a device."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relayout.cli.amounts import count
from relayout.cli.codes import DONE, REFUSED
from relayout.cli.names import NameOption, profiles
from relayout.cli.streams import model_of
from relayout.cli.terminal import add_dims, progress, show
from relayout.errors import RelayoutError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from relayout.report.fit import FitRecord

DESCRIPTION = (
    "Count the Transposes of models, or list what of them does not fit a device, where, why and "
    "what it costs; exit with 1 if one of them has more than allowed or does not fit. A folder "
    "stands for all files *.onnx in it."
)
MOST_HELP = "how many Transposes a model may have"
PROFILE_HELP = "a device, or a file *.toml with its limits"
EXAMPLE = "relayout check in.onnx --max-transposes 4"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "check",
        help="fail if a model has more Transposes than allowed, or does not fit a device",
        description=DESCRIPTION,
    )
    parser.add_argument("models", metavar="IN.onnx", nargs="+")
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--max-transposes", type=count, metavar="N", help=MOST_HELP)
    asked.add_argument("--profile", action=NameOption, named=profiles, about=PROFILE_HELP)
    add_dims(parser)
    parser.add_argument("--all", action="store_true", help="list every place that does not fit")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    return _count(options) if options.profile is None else _fit(options)


def _fit(options: argparse.Namespace) -> int:
    from relayout import api
    from relayout.report.fit import fit_text

    with progress() as stage:
        found = []
        for name in _files(options.models):
            stage(f"reading {name}")
            found.append(api.check_profile(model_of(name), options.profile, dims=dict(options.dim)))
    fits = all(each.fits for each in found)
    models = [each.to_json() for each in found]
    lines = (line for each in found for line in fit_text(each, every=options.all))
    record = {"models": models, "profile": options.profile, "ok": fits, "verdict": _fitting(found)}
    show(options, record, lines)
    return DONE if fits else REFUSED


def _fitting(found: Sequence[FitRecord]) -> str:
    """All in one line."""
    if len(found) == 1:
        return found[0].summary
    return f"{sum(not each.fits for each in found)} of {len(found)} models do not fit"


def _count(options: argparse.Namespace) -> int:
    from relayout import api

    most = options.max_transposes
    with progress() as stage:
        found: dict[str, int] = {}
        for name in _files(options.models):
            stage(f"reading {name}")
            found[name] = api.count(model_of(name), dims=dict(options.dim)).transposes
    models = [{"path": name, "transposes": n, "ok": n <= most} for name, n in found.items()]
    within = all(n <= most for n in found.values())
    verdict = _counted(found, most)
    record = {"models": models, "max_transposes": most, "ok": within, "verdict": verdict}
    show(options, record, _lines(found, most))
    return DONE if within else REFUSED


def _files(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if not Path(name).is_dir():
            yield name
            continue
        inside = sorted(str(path) for path in Path(name).rglob("*.onnx"))
        if not inside:
            raise RelayoutError(f"there is no file *.onnx in {name!r}")
        yield from inside


def _lines(found: dict[str, int], most: int) -> Iterator[RenderableType]:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    if len(found) == 1:
        yield escape(f"{next(iter(found))}: {_counted(found, most)}")
        return
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("model", overflow="fold")
    table.add_column("Transposes", justify="right")
    table.add_column("")
    for name, number in found.items():
        table.add_row(escape(name), str(number), _verdict(number, most))
    yield table
    yield _counted(found, most)


def _counted(found: dict[str, int], most: int) -> str:
    """All in one line."""
    from relayout.report.text import plural

    if len(found) == 1:
        (number,) = found.values()
        return f"{_verdict(number, most)}: {plural(number, 'Transpose')}, at most {most}"
    more = sum(number > most for number in found.values())
    return f"{more} of {len(found)} models have more than {most}"


def _verdict(number: int, most: int) -> str:
    return "ok" if number <= most else "too many"
