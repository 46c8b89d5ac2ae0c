"""relayout compare: every strategy on the same model."""

from __future__ import annotations

import argparse
from typing import Any

from relayout.cli.codes import DONE, REFUSED
from relayout.cli.streams import model_of
from relayout.cli.terminal import (
    add_choosing,
    add_numbers,
    add_report,
    choosing,
    numeric_options,
    progress,
    show,
    write_report,
)

DESCRIPTION = (
    "Choose layouts by every strategy there is, each through the same passes and the same "
    "verification, and show side by side what each leaves. Nothing is written."
)
EXAMPLE = "relayout compare in.onnx --target nhwc"
REGIONS_HELP = (
    "show what each method inserts, and the regions of strategies that go by regions: members, "
    "layout, Transposes at the border, and why each was flipped or kept"
)


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "compare", help="show what each way to choose layouts leads to", description=DESCRIPTION
    )
    parser.add_argument("model", metavar="IN.onnx")
    add_choosing(parser.add_argument_group("the choice of layouts"))
    numbers = parser.add_argument_group("verification")
    numbers.add_argument("--no-verify", action="store_true", help="do not compare numbers")
    add_numbers(numbers)
    told = parser.add_argument_group("what is reported")
    told.add_argument("--regions", action="store_true", help=REGIONS_HELP)
    add_report(told)
    told.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    from relayout.optimizer.compare import compare_strategies
    from relayout.optimizer.model_pages import comparison_page
    from relayout.report.comparison import comparison_text

    model = model_of(options.model)
    with progress() as stage:
        record = compare_strategies(
            model,
            **choosing(options),
            verify=not options.no_verify,
            inputs=numeric_options(options),
            regions=options.regions,
            stage=stage,
        )
        write_report(options, lambda: comparison_page(model, record))
    show(options, record.to_json(), comparison_text(record, regions=options.regions))
    verified = all(strategy.verified for strategy in record.strategies)
    return DONE if verified or options.no_verify else REFUSED
