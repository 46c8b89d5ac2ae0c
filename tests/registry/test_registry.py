from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint

import pytest

from relayout.errors import RelayoutError
from relayout.registry.registry import Registry

OWN = {"red": 1, "green": 2}


def registry(installed: Mapping[str, str] | None = None) -> Registry[int]:
    made = Registry("colour", "tests.colours", OWN)
    made.__dict__["_installed"] = {
        name: EntryPoint(name, place, "tests.colours") for name, place in (installed or {}).items()
    }
    return made


def test_names_come_in_order_with_those_of_others_last() -> None:
    assert list(registry({"blue": "sys:maxsize"})) == ["red", "green", "blue"]


def test_a_value_of_an_entry_point_is_loaded_when_it_is_asked_for() -> None:
    assert registry({"blue": "sys:maxsize"})["blue"] == sys.maxsize


def test_an_unknown_name_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(RelayoutError, match=r"unknown colour 'blue'; the colours are red, green"):
        registry()["blue"]


def test_a_name_that_is_taken_is_refused() -> None:
    made = registry()
    made.register("blue", 3)
    made.register("blue", 3)
    assert made["blue"] == 3
    with pytest.raises(RelayoutError, match="there is a colour 'red' already"):
        made.register("red", 4)


def test_what_is_registered_changes_no_other_registry() -> None:
    registry().register("blue", 3)
    assert "blue" not in registry()


def test_a_plugin_that_cannot_be_loaded_is_named_with_the_reason() -> None:
    made = registry({"blue": "no_such_module:BLUE"})
    assert "blue" in made
    with pytest.raises(RelayoutError, match=r"plugin tests\.colours 'blue'.*no_such_module"):
        made["blue"]


def test_a_plugin_that_gives_something_else_is_refused() -> None:
    with pytest.raises(RelayoutError, match=r"plugin tests\.colours 'blue' gives no int"):
        registry({"blue": "sys:platform"})["blue"]


def test_a_name_or_a_value_is_taken_and_nothing_else() -> None:
    assert registry().of("green") == 2
    assert registry().of(7) == 7
    with pytest.raises(RelayoutError, match="a colour is given by name or as int, not as tuple"):
        registry().of((1, 2))  # type: ignore[arg-type]
