"""relayout run: a model by one of the backends, with given or drawn inputs."""

from __future__ import annotations

import argparse
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

from relayout.cli.codes import DONE
from relayout.cli.compile import add_device
from relayout.cli.names import NameOption, backends_or_auto
from relayout.cli.terminal import add_numbers, numeric_options, progress, show
from relayout.errors import RelayoutError, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from relayout.graph.io.destination import Destination

DESCRIPTION = (
    "Compile a model for a backend, torch unless named, run it once, and print the shapes of its "
    "outputs and what numbers are in them. Without --feeds the inputs are drawn."
)
EXAMPLE = "relayout run in.onnx --dim N=8"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("run", help="run a model by a backend", description=DESCRIPTION)
    parser.add_argument("model", metavar="IN.onnx")
    parser.add_argument("--feeds", metavar="IN.npz", help="the inputs by name; drawn without it")
    parser.add_argument("-o", "--output", metavar="OUT.npz", help="keep the outputs")
    parser.add_argument("--backend", action=NameOption, named=backends_or_auto, about=BACKEND_HELP)
    add_device(parser)
    add_numbers(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=run)


BACKEND_HELP = "who is to run it, auto for the fastest that is installed (default: torch)"


def run(options: argparse.Namespace) -> int:
    with progress() as stage:
        stage("compiling")
        from relayout.backends.compile import AUTO
        from relayout.backends.compile import compile as compiled
        from relayout.graph.io.destination import Destination

        place = Destination.of(options.output) if options.output else None
        feeds = _feeds(options)
        model = compiled(
            options.model,
            backend=options.backend,
            device=options.device,
            dtype=options.dtype,
            tune=options.backend == AUTO,
            verify=options.backend == AUTO,
            inputs=numeric_options(options),
        )
        stage("running")
        try:
            outputs = model(feeds)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            reason = " ".join(str(error).split())[:300]
            raise RelayoutError(f"the model does not run on these inputs: {reason}") from None
    records = [record for name, value in outputs.items() for record in _records(name, value)]
    show(options, {"outputs": records}, [_line(record) for record in records])
    if place is not None:
        _save(place, outputs)
    return DONE


def _feeds(options: argparse.Namespace) -> dict[str, Any]:
    import numpy as np

    from relayout.backends.drawing import drawn_feeds

    if not options.feeds:
        return drawn_feeds(Path(options.model), numeric_options(options))
    try:
        with np.load(options.feeds) as archive:
            return dict(archive)
    except OSError as error:
        raise RelayoutError(f"cannot read {quoted(options.feeds)}: {error.strerror}") from None
    except (ValueError, BadZipFile) as error:
        raise RelayoutError(f"{quoted(options.feeds)} is no file *.npz: {error}") from None


def _records(name: str, value: Any) -> Iterable[dict[str, Any]]:
    """What there is to say of an output; of a sequence, of each part."""
    if isinstance(value, list):
        for index, part in enumerate(value):
            yield from _records(f"{name}[{index}]", part)
        return
    record: dict[str, Any] = {"name": name}
    if value is not None:
        record |= {"dtype": value.dtype.name, "shape": list(value.shape)}
    if value is not None and value.size and value.dtype.kind in "fiu":
        wide = value.astype("float64")
        record |= {"min": wide.min(), "mean": wide.mean(), "max": wide.max(), "std": wide.std()}
    yield record


def _line(record: dict[str, Any]) -> str:
    if "dtype" not in record:
        return f"{record['name']}: nothing"
    text = f"{record['name']}: {record['dtype']} {record['shape']}"
    numbers = [f"{key} {record[key]:.6g}" for key in ("min", "mean", "max", "std") if key in record]
    return f"{text}, {', '.join(numbers)}" if numbers else text


def _save(place: Destination, outputs: dict[str, Any]) -> None:
    import numpy as np

    from relayout.graph.io.destination import Document, write_documents

    archive = BytesIO()
    np.savez(archive, **outputs)
    with TemporaryDirectory(prefix="relayout-") as scratch:
        write_documents([Document(place, archive.getvalue())], Path(scratch))
