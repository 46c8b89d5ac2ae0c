"""The documents are true: generated parts are up to date, and what they name exists."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

import relayout
from docs.generated import OPERATORS, PARTS, README, REFERENCE, demo_text, part_of
from docs.layers import ROOT
from docs.operators import operators_text
from docs.reference import reference_text
from docs.roads import COMPILE, OPTIMIZE, Stop
from relayout.cli import command_parser, main, options_of
from relayout.cli.demo_model import network

PACKAGE = Path(relayout.__file__).parent
BASES = (ROOT, PACKAGE, PACKAGE / "backends" / "torch")
"""Files are named from one of these folders."""

GLOSSARY = ROOT / "docs" / "glossary.md"
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
DOCUMENTS = sorted((*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))

FILE_ENDINGS = (".py", ".md", ".h", ".cpp", ".toml", ".yml", ".yaml")
OPTIONS = frozenset(
    option
    for choices in command_parser()._subparsers._group_actions  # type: ignore[union-attr]
    for parser in choices.choices.values()  # type: ignore[union-attr]
    for option in parser._option_string_actions
)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=ids)


# -- parts that are made from the code ---------------------------------------------------------


MADE = [(path, name) for path, parts in PARTS.items() for name in parts if path != README]


@pytest.mark.parametrize(("path", "name"), MADE)
def test_a_made_part_is_up_to_date(path: Path, name: str) -> None:
    assert part_of(read(path), name) == PARTS[path][name](), "run `make docs`"


def test_the_reference_is_up_to_date() -> None:
    assert read(REFERENCE) == reference_text(), "run `make docs`"


def test_the_table_of_operators_is_up_to_date() -> None:
    assert read(OPERATORS) == operators_text(), "run `make docs`"


def test_readme_shows_what_the_demo_prints() -> None:
    shown = part_of(read(README), "demo")
    assert _without_error(shown) == _without_error(demo_text()), "run `make docs`"


def _without_error(text: str) -> str:
    """The last digits of a comparison are those of one processor."""
    return re.sub(r"largest error \S+", "largest error", text)


# -- what the documents name is there ----------------------------------------------------------


@every_document
def test_files_that_a_document_names_exist(document: Path) -> None:
    assert missing_files(read(document)) == []


@every_document
def test_links_of_a_document_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", read(document))
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (document.parent / target).exists()] == []


@every_document
def test_commands_of_a_document_can_be_called(document: Path) -> None:
    for command in commands(read(document)):
        options_of(command)


@every_document
def test_options_that_a_document_names_exist(document: Path) -> None:
    assert unknown_options(read(document)) == []


@every_document
def test_modules_that_a_document_runs_exist(document: Path) -> None:
    found = re.findall(r"python -m ((?:benchmarks|docs)[.\w]*)", read(document))
    places = [ROOT.joinpath(*module.split(".")) for module in found]
    assert [str(at) for at in places if not (at.with_suffix(".py").exists() or at.is_dir())] == []


@every_document
def test_what_a_document_makes_is_a_target_of_make(document: Path) -> None:
    found = set(re.findall(r"^(\w+):", read(ROOT / "Makefile"), flags=re.MULTILINE))
    assert set(re.findall(r"[`\n]make (\w+)", read(document))) <= found


def test_benchmarks_that_readme_lists_exist() -> None:
    names = re.findall(r"`\.(\w+)(?: PATH)?`", read(README))
    assert len(names) > 10
    places = [ROOT / "benchmarks" / name for name in names]
    assert [at.name for at in places if not (at.with_suffix(".py").exists() or at.is_dir())] == []


@pytest.mark.usefixtures("demo_network")
@pytest.mark.parametrize("is_optimised", [False, True])
def test_the_python_of_readme_runs(is_optimised: bool) -> None:
    if is_optimised:
        relayout.optimize("in.onnx", "in.onnx", verify=False)
    (block,) = re.findall(r"```python\n(import relayout\n.*?)```", read(README), flags=re.DOTALL)
    exec(block, {})


@pytest.fixture
def demo_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in.onnx").write_bytes(network().SerializeToString())
    monkeypatch.chdir(tmp_path)


@every_document
def test_what_a_document_calls_is_exported(document: Path) -> None:
    called = set(re.findall(r"\brelayout\.(\w+)\(", read(document)))
    assert called <= set(relayout.__all__)


def missing_files(text: str) -> list[str]:
    names = [name for name in _code_spans(text) if _is_file_name(name)]
    return [name for name in names if not any((base / name).exists() for base in BASES)]


def _is_file_name(name: str) -> bool:
    is_path = re.fullmatch(r"[A-Za-z_.][\w.-]*(/[\w.-]+)*/?", name) is not None
    return is_path and ("/" in name or name.endswith(FILE_ENDINGS))


def unknown_options(text: str) -> list[str]:
    ours = [span for span in _code_spans(text) if span.startswith(("relayout ", "--"))]
    return [each for span in ours for each in _options(span) if each not in OPTIONS]


def _options(span: str) -> list[str]:
    return re.findall(r"(?<!\S)--[\w-]+", span)


def _code_spans(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def commands(text: str) -> Iterator[list[str]]:
    """The arguments of all calls of relayout in blocks of code."""
    for block in re.findall(r"```\w*\n(.*?)```", text, flags=re.DOTALL):
        for line in block.splitlines():
            if line.startswith("relayout "):
                yield shlex.split(line, comments=True)[1:]


def test_a_file_that_is_not_there_is_found() -> None:
    assert missing_files("`graph/read.py` and `graph/absent.py`") == ["graph/absent.py"]


def test_an_option_that_is_not_there_is_found() -> None:
    assert unknown_options("`--target ort`, `relayout fuse --sideways`") == ["--sideways"]


# -- words and decisions -----------------------------------------------------------------------


def test_the_glossary_names_the_files_of_definitions() -> None:
    rows = re.findall(r"^\|.*\| `([\w/.]+)`: (.+) \|$", read(GLOSSARY), flags=re.MULTILINE)
    named = [(file, name) for file, names in rows for name in re.findall(r"`(\w+)`", names)]
    assert len(named) > 40
    assert [(file, name) for file, name in named if not _defines(file, name)] == []


def _defines(file: str, name: str) -> bool:
    text = read(next(base / file for base in BASES if (base / file).exists()))
    return re.search(rf"^(class|def) {name}\b|^{name}\b", text, flags=re.MULTILINE) is not None


@pytest.mark.parametrize("page", DECISIONS, ids=ids)
def test_a_decision_has_a_date_and_its_three_parts(page: Path) -> None:
    text = read(page)
    assert re.match(r"# .+\n\nDate: \d{4}-\d\d-\d\d\n", text)
    assert re.findall(r"^## (.+)$", text, flags=re.MULTILINE) == [
        "Context",
        "Decision",
        "Consequences",
    ]


def test_the_index_of_decisions_is_complete() -> None:
    index = read(ROOT / "docs" / "decisions" / "README.md")
    titles = [read(page).partition("\n")[0].removeprefix("# ") for page in DECISIONS]
    entries = re.findall(r"^\| \[(.+)\]\((.+)\) \| (\S+) \|$", index, flags=re.MULTILINE)
    assert [(title, name) for title, name, _ in entries] == [
        (title, page.name) for title, page in zip(titles, DECISIONS, strict=True)
    ]


# -- the roads ---------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", [*OPTIMIZE, *COMPILE], ids=lambda stop: stop.name)
def test_a_stop_of_a_road_is_there(stop: Stop) -> None:
    function = stop.name.rpartition(".")[2]
    assert re.search(rf"^ *def {function}\(", read(PACKAGE / stop.file), flags=re.MULTILINE)


@pytest.mark.usefixtures("demo_network")
def test_a_model_takes_the_road_of_optimize() -> None:
    reached = calls_of(["optimize", "in.onnx", "-o", "out.onnx"])
    assert stops_missed(OPTIMIZE, reached) == []


@pytest.mark.usefixtures("demo_network")
def test_a_model_takes_the_road_of_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("RELAYOUT_CACHE", str(tmp_path))
    monkeypatch.setenv("RELAYOUT_PROVIDERS", "library")  # the others take long to build kernels
    reached = calls_of(["compile", "in.onnx", "-o", "out.py"])
    assert stops_missed(COMPILE, reached) == []


def test_a_road_in_another_order_is_not_taken() -> None:
    reached = [(stop.file, stop.name) for stop in OPTIMIZE]
    assert stops_missed(tuple(reversed(OPTIMIZE)), reached)


def stops_missed(road: tuple[Stop, ...], reached: list[tuple[str, str]]) -> list[Stop]:
    """The stops that are not reached after those before them."""
    calls = iter(reached)
    return [stop for stop in road if not any(call == (stop.file, stop.name) for call in calls)]


def calls_of(arguments: list[str]) -> list[tuple[str, str]]:
    """The functions of the package that a command calls, in this order."""
    reached: list[tuple[str, str]] = []
    folder = f"{PACKAGE}/"

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(folder):
            reached.append((code.co_filename.removeprefix(folder), code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        assert main(arguments) == 0
    finally:
        sys.setprofile(before)
    return reached
