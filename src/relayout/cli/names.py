"""Options that take a name: registries are asked only where a name is given or listed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from relayout.errors import RelayoutError

if TYPE_CHECKING:
    from relayout.registry.registry import Registry


@dataclass(frozen=True, slots=True)
class NamedValues:
    """What an option can name."""

    summaries: Mapping[str, str]
    """A line about each value, by name."""
    default: str
    find: Callable[[str], object]
    """Refuses a name that is not known."""

    def listed(self) -> str:
        """A line for each of them."""
        return "\n".join(map(self._line, self.summaries))

    def _line(self, name: str) -> str:
        default = " (default)" if name == self.default else ""
        summary = self.summaries[name]
        return f"{name}: {summary}{default}" if summary else f"{name}{default}"


class ListedHelp(argparse.HelpFormatter):
    """Keeps the lines of a help apart and names whole."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        lines = [" ".join(line.split()) for line in text.splitlines()]
        indent = "  " if len(lines) > 1 else ""
        wrapped = (
            wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) for line in lines
        )
        return [part for parts in wrapped for part in parts]


class NameOption(argparse.Action):
    """An option that takes a name; where it is left out, the API's own default holds."""

    def __init__(self, *, named: Callable[[], NamedValues], about: str, **rest: Any) -> None:
        super().__init__(metavar="NAME", help=about, **rest)
        self.named, self.about = named, about

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        _option: str | None = None,
    ) -> None:
        try:
            self.named().find(str(values))
        except RelayoutError as error:
            parser.error(str(error))
        setattr(namespace, self.dest, values)

    def list_names(self) -> None:
        """Complete the help."""
        self.help = f"{self.about}:\n{self.named().listed()}".replace("%", "%%")


def given(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """The options that were given, for a function whose own defaults hold for the others."""
    return {name: getattr(options, name) for name in names if getattr(options, name) is not None}


def targets() -> NamedValues:
    from relayout.targets.target import ONNX, TARGETS, target_of

    return NamedValues(_summaries(TARGETS), ONNX.name, target_of)


def profiles() -> NamedValues:
    from relayout.targets.profiles.profile import profile_of, shipped_names

    summaries = {name: profile_of(name).summary for name in shipped_names()}
    return NamedValues(summaries, "", profile_of)


def strategies() -> NamedValues:
    from relayout.assign.strategies.registry import EXACT, STRATEGIES, strategy_of

    return NamedValues(_summaries(STRATEGIES), EXACT.name, strategy_of)


def backends() -> NamedValues:
    from relayout.backends.registry import BACKENDS, TORCH_BACKEND

    return NamedValues(_summaries(BACKENDS), TORCH_BACKEND.name, BACKENDS.__getitem__)


def backends_or_auto() -> NamedValues:
    from relayout.backends.compile import AUTO, asked_backends

    summaries = {AUTO: "the fastest of those that are installed", **backends().summaries}
    return NamedValues(summaries, "", asked_backends)


def objectives() -> NamedValues:
    from relayout.ops.measure import Objective, objective_of

    summaries = {each.value: each.summary for each in Objective}
    return NamedValues(summaries, "", objective_of)


def modes() -> NamedValues:
    from relayout.fusion.partition import MODES, RELAYOUT, mode_of

    summaries = {name: mode.summary for name, mode in MODES.items()}
    return NamedValues(summaries, RELAYOUT.name, mode_of)


def looks() -> NamedValues:
    from relayout.infer.looks import Look, look_of

    return NamedValues({each.value: each.summary for each in Look}, Look.BEFORE.value, look_of)


def walks() -> NamedValues:
    from relayout.infer.looks import Direction, walk_of

    return NamedValues(
        {each.value: each.summary for each in Direction}, Direction.FORWARDS.value, walk_of
    )


def _summaries(registry: Registry[Any]) -> dict[str, str]:
    return {name: _summary(registry, name) for name in registry}


def _summary(registry: Registry[Any], name: str) -> str:
    """A plugin that cannot be loaded is no reason to show no help."""
    try:
        return str(registry[name].summary)
    except RelayoutError as error:
        return str(error)
