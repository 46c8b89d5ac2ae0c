"""The C++ header and the ctypes structure of one interface; copied into written modules."""

from __future__ import annotations

import json
from typing import Any


def interface_digest(interface: dict[str, Any]) -> str:
    """What tells an interface from all others."""
    import hashlib

    return hashlib.sha256(json.dumps(interface, sort_keys=True).encode()).hexdigest()[:16]


def c_type(name: str) -> Any:
    """The type of ctypes for a type of C; pointers are addresses."""
    import ctypes

    if name.endswith("*") and name != "const char *":
        return ctypes.c_void_p
    return {
        "void": None,
        "int": ctypes.c_int,
        "int64_t": ctypes.c_int64,
        "float": ctypes.c_float,
        "const char *": ctypes.c_char_p,
    }[name]


def step_structure(interface: dict[str, Any]) -> Any:
    """The ctypes structure of a step."""
    import ctypes

    fields = [(name, c_type(kind)) for name, kind in interface["step"]]
    return type("Step", (ctypes.Structure,), {"_fields_": fields})


def structure_layout(structure: Any) -> list[int]:
    """Where each field of a structure begins, and the size of the structure."""
    import ctypes

    fields = [getattr(structure, name).offset for name, _ in structure._fields_]
    return [*fields, ctypes.sizeof(structure)]


def native_header(interface: dict[str, Any]) -> str:
    """The C++ declarations of an interface, and the functions that report it."""
    constants = [
        f"constexpr int {name} = {value};" for name, value in interface["constants"].items()
    ]
    enums = [
        f"enum {kind} {{ {', '.join(f'{name} = {value}' for name, value in members.items())} }};"
        for kind, members in interface["enums"].items()
    ]
    fields = [f"  {kind} {name};" for name, kind in interface["step"]]
    functions = [
        f'extern "C" {result} {name}({", ".join(parameters)});'
        for name, (result, *parameters) in interface["functions"].items()
    ]
    offsets = ", ".join(f"offsetof(Step, {name})" for name, _ in interface["step"])
    lines = [
        "#include <stddef.h>",
        "#include <stdint.h>",
        *constants,
        *enums,
        "struct Step {",
        *fields,
        "};",
        *functions,
        f'const char *interface_digest() {{ return "{interface_digest(interface)}"; }}',
        "int64_t step_layout(int64_t index) {",
        f"  static const int64_t LAYOUT[] = {{{offsets}, sizeof(Step)}};",
        "  return LAYOUT[index];",
        "}",
    ]
    return "\n".join(lines) + "\n"
