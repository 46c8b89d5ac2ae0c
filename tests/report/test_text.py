"""What people read: short names, readable reasons, the verdict last."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console, RenderableType

from relayout.api import inspect, optimize
from relayout.cli.demo_model import network
from relayout.report.alike import span_of
from relayout.report.explanation import AVOIDABLE, Demand, Demands, Explanation
from relayout.report.records import Assumed, Figures, OfferRecord, RunRecord, TransposeRecord
from relayout.report.text import ROWS_SHOWN, bytes_text, model_text, run_text, shortened, time_text

CONFLICT = Explanation(
    Demands((Demand("x", "", "the model's input 'x', given in this order"),)),
    Demands(
        (
            Demand("conv[0]", "Conv", "Conv wants channels", "/home/me/net.py:12"),
            Demand("conv[1]", "Conv", "Conv wants channels"),
            Demand("odd", "Gru", "nothing is known"),
        ),
        more=4,
    ),
)


def transpose(name: str = "turn", size: int = 2000, why: Explanation = CONFLICT) -> TransposeRecord:
    return TransposeRecord(name, "x", "[N,2]", (1, 0), size, "/home/me/block.py:34", why)


def run(*left: TransposeRecord, assumed: Assumed | None = None) -> RunRecord:
    figures = Figures(len(left), 10, 5)
    return RunRecord(
        source="a.onnx",
        output="b.onnx",
        target="onnx",
        before=Figures(9, 100, 9),
        after=figures,
        changed=True,
        applied={"fold constants": 2, "restate node": 12},
        left=left,
        assumed=assumed or Assumed(),
        notices=("take [care]",),
        verdict="equal",
        verified=True,
        optimal=True,
        seconds={},
        minimized="fewest bytes",
    )


def printed(lines: Iterable[RenderableType], width: int = 120) -> str:
    stream = StringIO()
    console = Console(file=stream, width=width)
    for line in lines:
        console.print(line, highlight=False)
    return stream.getvalue()


def test_a_long_name_loses_its_middle() -> None:
    name = "/model/layers.0/attention/Transpose_1"
    assert shortened(name, 20) == "/model…n/Transpose_1"
    assert shortened(name, len(name)) == name


def test_conflicting_demands_are_shown_side_by_side() -> None:
    text = printed(run_text(run(transpose())))
    assert "stored for the model's input 'x', given in this order" in text
    assert "wanted by conv[0] (net.py:12), conv[1]: Conv wants channels" in text
    assert "wanted by Gru odd: nothing is known" in text
    assert "wanted by 4 more" in text
    assert "block.py:34" in text
    assert "[N,2] 2.0 KB" in text
    assert "\n  turn\n" in text, "a name has a line of its own"
    assert "note: take [care]" in text


def test_an_explanation_is_a_line_of_its_own() -> None:
    stored = Demands((Demand("x", "", "the model's input 'x', given in this order"),))
    wanted = Demands((Demand("conv", "Conv", "Conv takes its channels from axis 1"),), more=2)
    assert str(Explanation(stored, wanted, "needed")) == (
        "needed; stored for the model's input 'x', given in this order; "
        "wanted by conv: Conv takes its channels from axis 1; wanted by 2 more"
    )
    assert str(Explanation()) == ""


def test_an_avoidable_transpose_shows_no_conflict() -> None:
    text = printed(run_text(run(transpose(why=replace(CONFLICT, note=AVOIDABLE)))))
    assert AVOIDABLE in text
    assert "stored for" not in text


def test_the_largest_are_shown_unless_every_one_is_asked_for() -> None:
    reasons = [Explanation(note=f"reason {index:02}") for index in range(ROWS_SHOWN + 3)]
    left = [transpose(f"turn{i:02}", i, why) for i, why in enumerate(reasons)]
    few, every = (printed(run_text(run(*left), every=every)) for every in (False, True))
    assert "3 more Transposes, in groups that move no more: --all shows them" in few
    assert "turn02" not in few
    assert few.index("turn12") < few.index("turn03")
    assert "turn02" in every
    assert "--all" not in every


def test_what_is_alike_is_told_once() -> None:
    left = [transpose(f"/blocks/blocks.{i}/attn/Transpose", 2000 - i) for i in range(12)]
    few, every = (printed(run_text(run(*left), every=every)) for every in (False, True))
    assert few.count("stored for") == 1
    assert "and 11 more like it, in blocks.1 to blocks.11: 23.9 KB in all" in few
    assert every.count("stored for") == 12


def test_what_differs_in_axes_only_is_alike() -> None:
    def because(axes: str) -> Explanation:
        demand = Demand(
            "r", "Reshape", f"Reshape merges axes {axes}, which this order stores apart"
        )
        return Explanation(Demands((demand,)), Demands())

    one = transpose("/a/T", 3000, because("1, 2 and 3"))
    other = replace(transpose("/b/T", 1000, because("0 and 1")), perm=(0, 1))
    another = transpose("/c/T", 500, CONFLICT)
    told = printed(run_text(run(one, other, another)))
    assert "and 1 more like it, 2 perms: 4.0 KB in all" in told
    assert told.count("which this order stores apart") == 1
    assert "/c/T" in told


@pytest.mark.parametrize(
    ("names", "span"),
    [
        (["a.1.b", "a.2.b", "a.10.b"], "a.1.b to a.10.b"),
        (["/x/l.3/y", "/x/l.1/y"], "l.1 to l.3"),
        (["/l.1/T_1", "/l.2/T_2"], "l.1 to l.2"),
        (["/l.1/T_1", "/l.2/T_7"], ""),
        (["/l.1/T", "/m.2/T"], ""),
        (["/l.1/T"], ""),
    ],
)
def test_a_span_is_told_where_one_number_differs(names: list[str], span: str) -> None:
    assert span_of(names) == span


def test_offers_are_told_in_one_line() -> None:
    record = replace(run(), offers=(OfferRecord("--opset 23", 1, 9600),))
    assert "\n--opset 23 would leave 1 Transpose, 9.6 KB moved\n" in printed(run_text(record))


@pytest.mark.parametrize(
    ("assumed", "note"),
    [
        (Assumed(("N",), 0, 32), "note: N counts as 32; set it with --dim N=..."),
        (Assumed(("N", "S"), 0, 32), "note: N, S count as 32; set them with --dim N=..."),
        (Assumed((), 1, 32), "note: 1 length known only at run time, counted as 32"),
    ],
)
def test_assumed_lengths_are_reported(assumed: Assumed, note: str) -> None:
    assert note in printed(run_text(run(assumed=assumed)))


def test_known_lengths_are_not_reported() -> None:
    assert "counted as" not in printed(run_text(run()))
    assert "--dim" not in printed(model_text(inspect(network(), dims={"N": 4})))
    assert "N counts as 32" in printed(model_text(inspect(network())))


def test_rewrites_are_listed_most_frequent_first() -> None:
    text = printed(run_text(run()))
    assert text.index("12   restate node") < text.index("2   fold constants")


def test_a_long_name_is_whole_and_the_verdict_is_last() -> None:
    long = "/a/very/long/path/of/modules/" * 3 + "Transpose"
    lines = printed(run_text(run(transpose(long))), 400).rstrip().splitlines()
    assert f"  {long}" in lines
    least = "fewest bytes, proved least for the variants offered"
    assert lines[-1] == f"9 -> 1 Transpose; equal; {least}; wrote b.onnx"


def test_what_is_left_is_explained_in_json_too() -> None:
    record = json.loads(json.dumps(optimize(network(), verify=False).record().to_json()))
    last = record["left"][-1]["why"]
    assert [demand["op_type"] for demand in last["wanted_by"]["named"]] == ["Conv"]
    assert last["note"].startswith("needed by the variants offered")
    assert record["assumed"] == {"names": ["N"], "others": 0, "length": 32}


def test_times_keep_below_a_thousand() -> None:
    times = [time_text(each) for each in (8_000, 999_940, 5_059_000, 2_500_000_000)]
    assert times == ["8.0 us", "999.9 us", "5.06 ms", "2.50 s"]


def test_sizes_keep_below_a_thousand() -> None:
    assert [bytes_text(size) for size in (999, 1000, 2_500_000)] == ["999 B", "1.0 KB", "2.5 MB"]
