"""Where models come from: files, globs, folders, lists, repositories of the Hugging Face hub."""

from __future__ import annotations

import glob
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from relayout.errors import RelayoutError, missing, quoted

LIST = "@"
"""Before the name of a file that has a source in each line, with options for it after it."""

REPOSITORY = "hf:"
"""Before the id of a repository, which may be left out where no file has that name."""

_ID = re.compile(r"[\w.-]+/[\w.-]+")
_FETCHED = ("*.onnx", "*.onnx_data*", "*.onnx.data*", "*.data", "*.bin")
"""What is fetched of a repository: models, and the files in which they keep their data."""


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model that was found, with a name of its own below the folder of results."""

    name: str
    path: Path
    options: tuple[str, ...] = ()
    """Options of its own, which a list gives after the source."""


def found_models(sources: Iterable[str]) -> list[FoundModel]:
    """All models in the order of the sources, each once with the same options.

    A source without options of its own adds only models that are not there yet. Names are told
    apart.
    """
    by_call: dict[tuple[Path, tuple[str, ...]], FoundModel] = {}
    known = set[Path]()
    for source, options in _listed(sources):
        for name, found in _found(source):
            path = found.absolute()
            if options or path not in known:
                # A name is that of a folder, and no such folder may lie in another.
                model = FoundModel(name.replace("/", "__"), path, options)
                by_call.setdefault((path, options), model)
                known.add(path)
    taken: set[str] = set()
    result = []
    for model in by_call.values():
        name = model.name if model.name not in taken else f"{model.name}~{_mark(model)}"
        taken.add(name)
        result.append(replace(model, name=name))
    return result


def _listed(sources: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The sources with those of lists in their place, and with options that belong to them."""
    for source in sources:
        if not source.startswith(LIST):
            yield source, ()
            continue
        for line in _lines(Path(source[len(LIST) :])):
            first, *options = shlex.split(line)
            yield first, tuple(options)


def _mark(model: FoundModel) -> str:
    return sha256(shlex.join([str(model.path), *model.options]).encode()).hexdigest()[:8]


def _found(source: str) -> Iterator[tuple[str, Path]]:
    if source.startswith(REPOSITORY):
        yield from _repository(source[len(REPOSITORY) :])
    elif Path(source).is_dir():
        yield from _folder(Path(source), "")
    elif Path(source).exists():
        yield Path(source).stem, Path(source)
    elif any(char in source for char in "*?["):
        yield from _matches(source)
    elif _ID.fullmatch(source):
        yield from _repository(source)
    else:
        raise RelayoutError(f"there is no model, folder or list {quoted(source)}")


def _lines(file: Path) -> list[str]:
    try:
        lines = file.read_text().splitlines()
    except OSError as error:
        raise RelayoutError(
            f"the list {quoted(str(file))} cannot be read: {error.strerror}"
        ) from None
    except UnicodeDecodeError as error:
        raise RelayoutError(f"the list {quoted(str(file))} is not text: {error}") from None
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _folder(folder: Path, prefix: str) -> Iterator[tuple[str, Path]]:
    paths = sorted(folder.rglob("*.onnx"))
    if not paths:
        raise RelayoutError(f"there is no file *.onnx in {quoted(str(folder))}")
    for path in paths:
        yield prefix + path.relative_to(folder).with_suffix("").as_posix(), path


def _matches(pattern: str) -> Iterator[tuple[str, Path]]:
    paths = sorted(Path(name) for name in glob.glob(pattern, recursive=True))  # noqa: PTH207 - it may begin anywhere
    if not paths:
        raise RelayoutError(f"no file matches {quoted(pattern)}")
    for path in paths:
        yield from _folder(path, f"{path.name}/") if path.is_dir() else [(path.stem, path)]


def _repository(name: str) -> Iterator[tuple[str, Path]]:
    try:
        from huggingface_hub import snapshot_download  # noqa: PLC0415 - an extra
        from huggingface_hub.errors import (  # noqa: PLC0415 - an extra
            HfHubHTTPError,
            HFValidationError,
            LocalEntryNotFoundError,
        )
    except ImportError:
        what = f"there is no file {quoted(name)}; a repository needs the client of the hub"
        raise missing(what, "hub") from None
    try:
        folder = snapshot_download(name, allow_patterns=list(_FETCHED))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise RelayoutError(f"repository {quoted(name)} cannot be fetched: {reason}") from None
    yield from _folder(Path(folder), f"{name}/")
