"""Operators on bytes that ONNX Runtime runs channels last."""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from relayout.graph.read import NodeView
from relayout.layout.permutation import Permutation
from relayout.layout.transport import AttributeValue, Changes, Refusal, Transport
from relayout.ops.registry import facts_named
from relayout.ops.rule import OpRule, lead_only

CONTRIB_DOMAIN = "com.microsoft"
CHANNELS_LAST = "channels_last"
BYTES = frozenset((ir.DataType.UINT8, ir.DataType.INT8))
RANKS = (3, 4, 5)


def last_of(rank: int) -> Permutation:
    return Permutation((0, *range(2, rank), 1))


def _or_last(op_type: str, last: str, marked: bool) -> OpRule:
    """A standard operator that has a channels-last form, with another name or an attribute.

    Its weight stays as it is.
    """
    standard = facts_named("", op_type).rule
    mark: dict[str, AttributeValue] = {CHANNELS_LAST: 1} if marked else {}

    def transport(view: NodeView, order: Permutation) -> Transport | Refusal:
        is_last = order.rank in RANKS and order == last_of(order.rank)
        if not is_last or view.dtype(0) not in BYTES or view.results != 1:
            return standard.transport(view, order)
        return lead_only(view, order, Changes(mark, op_type=last, domain=CONTRIB_DOMAIN))

    return replace(standard, transport=transport)


def _back(op_type: str, first: str) -> OpRule:
    """The form channels last of a standard operator, which is its name without the mark."""

    def transport(view: NodeView, order: Permutation) -> Transport | Refusal:
        is_first = order.rank in RANKS and order == last_of(order.rank).inverse()
        is_last = view.integer(CHANNELS_LAST, op_type != first)
        if not is_first or not is_last:
            return Refusal(f"{view.op_type} has its channels along one axis")
        return lead_only(view, order, Changes({CHANNELS_LAST: None}, op_type=first, domain=""))

    return OpRule(transport)


def _marked(view: NodeView, order: Permutation) -> Transport | Refusal:
    """An operator of the runtime's own whose attribute states channels first or last."""
    is_last = view.integer(CHANNELS_LAST, 0)
    if order.rank not in RANKS:
        return Refusal(f"{view.op_type} runs along one to three axes")
    last = last_of(order.rank)
    if order != (last.inverse() if is_last else last):
        return Refusal(f"{view.op_type} has its channels along the first axis or the last")
    return lead_only(view, order, Changes({CHANNELS_LAST: 1 - is_last}))


RULES: dict[tuple[str, str], OpRule] = {
    ("", "QLinearConv"): _or_last("QLinearConv", "QLinearConv", marked=True),
    ("", "MaxPool"): _or_last("MaxPool", "NhwcMaxPool", marked=False),
    (CONTRIB_DOMAIN, "QLinearConv"): _back("QLinearConv", "QLinearConv"),
    (CONTRIB_DOMAIN, "NhwcMaxPool"): _back("NhwcMaxPool", "MaxPool"),
    (CONTRIB_DOMAIN, "QLinearAveragePool"): OpRule(_marked),
    (CONTRIB_DOMAIN, "QLinearGlobalAveragePool"): OpRule(_marked),
}
