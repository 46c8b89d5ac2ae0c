"""Drawn inputs for a model that is to be run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from relayout.errors import RelayoutError, quoted
from relayout.verify.bindings import open_dims, ports_to_try
from relayout.verify.inputs import Draw, draw_feeds, undrawable
from relayout.verify.interface import Interface, Port, UnreadableModelError, interface_of
from relayout.verify.verdict import NumericOptions


def drawn_feeds(path: Path, options: NumericOptions) -> dict[str, Any]:
    """Normal numbers for the inputs of a model; every open length must have been named."""
    try:
        interface = interface_of(path)
    except UnreadableModelError as error:
        raise RelayoutError(str(error)) from None
    ports = next(iter(ports_to_try(interface.required, options)))
    for port in ports:
        if undrawable(port):
            raise RelayoutError(f"no values can be drawn for input {quoted(port.name)}")
    lengths = [_length(dim.name, ports) for dim in open_dims(ports)]
    if lengths:
        raise RelayoutError(f"the model leaves lengths open; name them: {' '.join(lengths)}")
    return _drawn(interface, ports, options)


def _length(name: str, ports: Any) -> str:
    """The option that names a length."""
    is_nameless = any(name.startswith(f"{port.name}[") for port in ports)
    return f"--dim '{name}=…'" if is_nameless else f"--dim {name}=…"


def _drawn(
    interface: Interface, ports: tuple[Port, ...], options: NumericOptions
) -> dict[str, Any]:
    return draw_feeds(interface, ports, {}, Draw("normal", normal=True), options)
