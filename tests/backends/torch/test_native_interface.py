"""The C++ header and the Python structure of steps come from one description."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from relayout.backends.torch.providers.native_interface import (
    FLAGS,
    INTERFACE,
    KernelKind,
    NativeInterface,
)
from relayout.backends.torch.providers.native_steps import Buffer, NativeStep, entry_of, placed
from relayout.backends.torch.runtime.native_interface import (
    interface_digest,
    native_header,
    step_structure,
    structure_layout,
)
from relayout.backends.torch.runtime.native_library import NativeLibrary, compile_library

COMPILER = shutil.which("g++")
STUBS = "void run(const Step *, int64_t, int, double *) {}\nvoid after_fork() {}\n"

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no compiler")
longer = replace(INTERFACE, step=(("flavour", "float"), *INTERFACE.step, ("last", "float")))


def test_a_new_field_is_in_the_header_and_in_python() -> None:
    assert "  float flavour;\n  int64_t kind;\n" in native_header(longer.literal)
    fields = [name for name, _ in step_structure(longer.literal)._fields_]
    assert fields == ["flavour", *(name for name, _ in INTERFACE.step), "last"]
    assert structure_layout(step_structure(longer.literal))[:2] == [0, 8]


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        (replace(INTERFACE, constants={**INTERFACE.constants, "LANES": 4}), "int LANES = 4;"),
        (replace(INTERFACE, enums={"KernelKind": {"SOFTMAX": 7}}), "KernelKind { SOFTMAX = 7 };"),
        (replace(INTERFACE, functions={"run": ("int", "float")}), '"C" int run(float);'),
        (replace(INTERFACE, flags=(*FLAGS, "-g")), ""),
    ],
)
def test_any_change_is_in_the_header_and_in_the_digest(changed: NativeInterface, line: str) -> None:
    assert line in native_header(changed.literal)
    assert not line or line not in native_header(INTERFACE.literal)
    digest = interface_digest(changed.literal)
    assert digest != interface_digest(INTERFACE.literal)
    assert f'"{digest}"' in native_header(changed.literal)


def test_the_digest_is_the_same_in_a_written_module() -> None:
    """A module has the interface as a literal."""
    literal = INTERFACE.literal
    assert interface_digest(eval(repr(literal))) == interface_digest(literal)


def test_kinds_are_numbered_as_in_python() -> None:
    header = native_header(INTERFACE.literal)
    assert all(f"{kind.name} = {int(kind)}" in header for kind in KernelKind)


def test_the_kernels_define_nothing_of_the_interface_themselves() -> None:
    folder = resources.files("relayout.backends.torch.providers") / "native"
    for file in folder.iterdir():
        text = file.read_text(encoding="utf-8")
        for name in INTERFACE.constants:
            assert re.search(rf"\b{name}\s*=[^=]", text) is None, (file.name, name)


def test_steps_have_all_fields_of_the_structure() -> None:
    step = NativeStep(KernelKind.SUM, Buffer((1, 1, 1, 8), 0), Buffer((1, 1, 1, 8)))
    entry = entry_of(step, placed([step], [step.result])[0])
    assert {name for name, _ in INTERFACE.step} <= set(entry)


PRINTED = """
#include <stdio.h>
int main() {{
  size_t layout[] = {{{offsets}, sizeof(Step)}};
  for (size_t each : layout) printf("%zu ", each);
}}
"""


@needs_compiler
@pytest.mark.parametrize("interface", [INTERFACE, longer])
def test_fields_lie_where_the_compiler_puts_them(
    interface: NativeInterface, tmp_path: Path
) -> None:
    offsets = ", ".join(f"offsetof(Step, {name})" for name, _ in interface.step)
    source, program = tmp_path / "layout.cpp", tmp_path / "layout"
    source.write_text(native_header(interface.literal) + STUBS + PRINTED.format(offsets=offsets))
    subprocess.run([str(COMPILER), source, "-o", program], check=True)
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    structure = step_structure(interface.literal)
    assert [int(each) for each in printed.split()] == structure_layout(structure)


def library_of(header: str, folder: Path) -> Path:
    path = folder / "kernels.so"
    compile_library(header + STUBS, [str(COMPILER), "-shared", "-fPIC"], path)
    return path


@needs_compiler
def test_the_library_reports_its_digest_and_layout(tmp_path: Path) -> None:
    path = library_of(native_header(longer.literal), tmp_path)
    library = NativeLibrary(path, longer.literal)
    assert library.functions.interface_digest().decode() == interface_digest(longer.literal)
    layout = structure_layout(library.step)
    assert [library.functions.step_layout(n) for n in range(len(layout))] == layout


def misplaced(interface: Mapping[str, Any]) -> str:
    """A header whose digest is right and whose first two fields are not."""
    header = native_header(dict(interface))
    return header.replace("  int64_t kind;\n", "").replace(
        "  int64_t batch;\n", "  int64_t batch;\n  int64_t kind;\n"
    )


@needs_compiler
@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (native_header(longer.literal), "was built for another interface"),
        (misplaced(INTERFACE.literal), "has fields of steps at other places"),
        (native_header(INTERFACE.literal).replace("interface_digest", "nothing"), "no function"),
    ],
)
def test_another_library_is_never_called(header: str, reason: str, tmp_path: Path) -> None:
    path = library_of(header, tmp_path)
    with pytest.raises(ImportError, match=reason):
        NativeLibrary(path, INTERFACE.literal)
