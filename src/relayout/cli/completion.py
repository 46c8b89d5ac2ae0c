"""relayout completion: a script that lets a shell complete commands and options."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from relayout.cli.codes import DONE

SHELLS = ("bash", "zsh", "fish")
DESCRIPTION = (
    "Print a script that lets a shell complete the commands and options of relayout. For bash and "
    'zsh: eval "$(relayout completion bash)"; for fish: relayout completion fish | source.'
)
EXAMPLE = "relayout completion bash"

BASH = """_relayout() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words=
  if [ "$COMP_CWORD" -eq 1 ]; then words="{commands}"
  elif [[ $current == -* ]]; then
    case ${{COMP_WORDS[1]}} in
{cases}
    esac
  else COMPREPLY=($(compgen -f -- "$current")); return; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o filenames -F _relayout relayout"""
ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "completion", help="print a completion script for a shell", description=DESCRIPTION
    )
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(command=run, commands=commands.choices)


def run(options: argparse.Namespace) -> int:
    listed = {name: _options(parser) for name, parser in options.commands.items()}
    sys.stdout.write(_fish(listed) if options.shell == "fish" else _bash(listed, options.shell))
    return DONE


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return sorted(
        option
        for action in parser._actions  # noqa: SLF001 - argparse has no other way to list them
        for option in action.option_strings
        if option.startswith("--")
    )


def _bash(listed: dict[str, list[str]], shell: str) -> str:
    cases = "\n".join(
        f'      {name}) words="{" ".join(words)}" ;;' for name, words in listed.items()
    )
    script = BASH.format(commands=" ".join(listed), cases=cases)
    return (ZSH if shell == "zsh" else "") + script + "\n"


def _fish(listed: dict[str, list[str]]) -> str:
    lines = [f"complete -c relayout -n __fish_use_subcommand -a {name}" for name in listed]
    lines += [
        f"complete -c relayout -n '__fish_seen_subcommand_from {name}' -l {option[2:]}"
        for name, words in listed.items()
        for option in words
    ]
    return "\n".join(lines) + "\n"
