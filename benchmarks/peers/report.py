"""Results as a page with tables and plots."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from benchmarks.peers.plots import bars, curves
from benchmarks.peers.records import Kept, figure, mean, milliseconds, moving, ratio_of
from benchmarks.peers.tools import TOOLS
from relayout.timing.contest import GIVEN

ENGINE_WORDS = {"ort": "ONNX Runtime", "openvino": "OpenVINO"}
LIMITS = {"ort": 0.98, "openvino": 0.97}
"""A model that is less than this many times as fast as given counts as slower."""
NAMES = tuple(tool.name for tool in TOOLS)
RELAYOUT = tuple(name for name in NAMES if name.startswith("relayout"))
PEERS = tuple(name for name in NAMES if name not in RELAYOUT)

TOP = """\
# relayout beside other tools

Written by `python -m benchmarks.peers PATH`, which runs every tool on every model of a folder,
without verification, and every result in ONNX Runtime and OpenVINO with their default settings.
Times are those of one thread on its core; all results of a model take turns in one process, and a
ratio is the median over pairs of runs: above 1 is faster than the given model. `relayout` is what
it does without options, `bytes` and `count` are objectives, `ort` and `openvino` are targets.
Other results: [compiled networks](resnet101/RESULTS.md).
"""


def write(kept: Kept, page: Path) -> None:
    """The page, and its plots in a folder beside it."""
    folder = page.parent / "plots"
    folder.mkdir(exist_ok=True)
    for name, text in _plots(kept):
        (folder / name).write_text(text)
    page.write_text("\n".join(_page(kept)) + "\n")


def _page(kept: Kept) -> Iterator[str]:
    yield TOP
    versions = ", ".join(f"{name} {number}" for name, number in kept.versions.items())
    yield f"{len(kept.models)} models; {kept.date}; {versions}.\n"
    yield "## All models\n"
    yield from _totals(kept)
    yield "\n![Times as fast as given in ONNX Runtime](plots/ort.svg)"
    yield "![Times as fast as given in OpenVINO](plots/openvino.svg)"
    yield "![Transposes left](plots/transposes.svg)\n"
    yield "## By origin\n"
    yield "Geometric means of the models that a runtime runs.\n"
    yield from _families(kept)
    for engine, words in ENGINE_WORDS.items():
        yield f"\n## Every model in {words}\n"
        yield from _every(kept, engine)
    yield "\n## Transposes of every model\n"
    yield from _transposes(kept)


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|---" + "|---:" * (len(head) - 1) + "|"
    yield from ("| " + " | ".join(row) + " |" for row in rows)


def _totals(kept: Kept) -> Iterator[str]:
    head = ["", "models", "Transposes", "GB moved", "time moving"]
    for engine, words in ENGINE_WORDS.items():
        head += [words, "least", f"under {LIMITS[engine]}"]
    head += ["CPU s", "peak MB"]
    yield from _table(head, (_total(kept, name) for name in (GIVEN, *NAMES)))
    yield (
        "\nTransposes and bytes are sums over the models for which all tools have a result that "
        "can be read. Time moving is what ONNX Runtime's profile gives to Transposes and Reorders, "
        "in all models. CPU seconds and memory are those of the tool itself, as medians."
    )


def _comparable(kept: Kept) -> list[str]:
    """The models that every tool has a readable result for."""
    return [
        name
        for name, record in kept.models.items()
        if all(figure(record, tool, "transposes") is not None for tool in (GIVEN, *NAMES))
    ]


def _total(kept: Kept, tool: str) -> list[str]:
    models = [kept.models[name] for name in _comparable(kept)]
    left = sum(figure(record, tool, "transposes") or 0 for record in models)
    moved = sum(figure(record, tool, "bytes") or 0 for record in models)
    row = [tool, str(len(models)), str(left), f"{moved / 1e9:.2f}", _share(kept, tool)]
    for engine, limit in LIMITS.items():
        ratios = list(kept.ratios(engine, tool).values())
        slower = sum(ratio < limit for ratio in ratios)
        row += [
            _mean_text(ratios),
            f"{min(ratios):.2f}" if ratios else "",
            f"{slower} of {len(ratios)}",
        ]
    spent = [record["tools"][tool] for record in kept.models.values() if tool in record["tools"]]
    for key in ("seconds", "megabytes"):
        row.append(f"{statistics.median(each[key] for each in spent):.3g}" if spent else "")
    return row


def _mean_text(ratios: Collection[float]) -> str:
    """The geometric mean, or nothing where no model has a ratio."""
    return f"{mean(ratios):.3f}" if ratios else ""


def _share(kept: Kept, tool: str) -> str:
    """Of the models that all results of run in ONNX Runtime: time spent moving, and its share."""
    found = [moving(record, tool) for record in kept.models.values()]
    given = [moving(record, GIVEN) for record in kept.models.values()]
    both = [(own, first) for own, first in zip(found, given, strict=True) if own and first]
    spent, whole = sum(own[0] for own, _ in both), sum(own[1] for own, _ in both)
    return f"{spent:.1f} of {whole:.0f} ms ({100 * spent / whole:.1f} %)" if whole else ""


def _families(kept: Kept) -> Iterator[str]:
    families: dict[str, list[str]] = {}
    for name in sorted(kept.models):
        families.setdefault(name.partition("__")[0], []).append(name)
    shown = (*RELAYOUT, "onnxsim", "onnxslim")
    for engine, words in ENGINE_WORDS.items():
        rows = (
            [
                family,
                str(len(names)),
                *(_mean_text(kept.ratios(engine, tool, names).values()) for tool in shown),
            ]
            for family, names in families.items()
        )
        yield from _table([words, "models", *shown], iter(rows))
        yield ""


def _every(kept: Kept, engine: str) -> Iterator[str]:
    def row(name: str) -> list[str]:
        record = kept.models[name]
        given = milliseconds(record, engine)
        ratios = [ratio_of(record, engine, tool) for tool in NAMES]
        texts = ["" if ratio is None else f"{ratio:.3f}" for ratio in ratios]
        return [name, "" if given is None else f"{given:.3f}", *texts]

    ran = [name for name in sorted(kept.models) if milliseconds(kept.models[name], engine)]
    yield from _table(["model", "given ms", *NAMES], map(row, ran))
    refused = [name for name in sorted(kept.models) if name not in ran]
    if refused:
        yield f"\n{ENGINE_WORDS[engine]} does not run as given: {', '.join(refused)}."


def _transposes(kept: Kept) -> Iterator[str]:
    def row(name: str) -> list[str]:
        left = [figure(kept.models[name], tool, "transposes") for tool in (GIVEN, *NAMES)]
        return [name, *("" if each is None else str(each) for each in left)]

    yield from _table(["model", GIVEN, *NAMES], map(row, sorted(kept.models)))


def _plots(kept: Kept) -> Iterator[tuple[str, str]]:
    for engine, words in ENGINE_WORDS.items():
        series = {tool: list(kept.ratios(engine, tool).values()) for tool in NAMES}
        yield f"{engine}.svg", curves(f"Times as fast as given in {words}, one thread", series)
    models = [kept.models[name] for name in _comparable(kept)]
    left = {
        tool: float(sum(figure(record, tool, "transposes") or 0 for record in models))
        for tool in (GIVEN, *NAMES)
    }
    yield "transposes.svg", bars(f"Transposes left in {len(models)} models", left)
