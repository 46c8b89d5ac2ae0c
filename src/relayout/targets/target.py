"""What a runtime can run beyond standard ONNX."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TypeAlias

import onnx_ir as ir

from relayout.errors import RelayoutError
from relayout.graph.read import NodeView
from relayout.graph.region import KERNEL_DOMAIN, regions_of
from relayout.layout.shuffle import StoredOrder
from relayout.ops.einsum import product_as_einsum
from relayout.ops.measure import Objective, objective_of
from relayout.ops.registry import rule_of, shuffles_of
from relayout.ops.rule import OpRule, barrier
from relayout.ops.shuffles import NO_SHUFFLES, ShuffleFacts
from relayout.registry.registry import Registry
from relayout.targets import (
    images,
    litert,
    nhwc,
    openvino,
    ort,
    ort_absorbed,
    ort_broadcasts,
    ort_norms,
    ort_quantised,
    ort_quantised_convs,
)
from relayout.targets.channels_last import HWIO, HWOI, KERNELS, OHWI, ChannelsLastKernel
from relayout.targets.gate import Gate
from relayout.targets.parted import Parted
from relayout.targets.prices.table import RuntimePrices, read_prices, shipped
from relayout.targets.profiles.narrowing import narrowed
from relayout.targets.profiles.profile import Profile, profile_of


def _nothing(_graph: ir.Graph) -> set[ir.Node]:
    return set()


KEPT_AS_GIVEN = barrier("it stays as it is, as asked")

ExtraPrice: TypeAlias = Callable[[NodeView, RuntimePrices, Mapping[str, int]], int]
"""Nanoseconds that a node takes longer than most of its kind."""


PartedBy: TypeAlias = Callable[[NodeView, StoredOrder | None], Parted | None]
"""What is lost where a node reads its first operand in an order."""


def _no_extra(_view: NodeView, _prices: RuntimePrices, _dims: Mapping[str, int]) -> int:
    return 0


def _none_joined(_graph: ir.Graph) -> int:
    return 0


def _nothing_parted(_view: NodeView, _order: StoredOrder | None) -> Parted | None:
    return None


@dataclass(frozen=True, slots=True)
class Target:
    """What a runtime can run, as far as the choice of operators depends on it."""

    name: str
    fused_matmul: bool = False
    """Whether it has `com.microsoft.FusedMatMul`, a MatMul with transA and transB."""
    fused_attention: bool = False
    """Whether it has `com.microsoft.MultiHeadAttention`."""
    raises: bool = True
    """Whether attentions are raised to an operator where it has one."""
    raises_apart: bool = field(default=False, repr=False)
    """Whether they are also raised where that saves no Transpose: where the operator is faster."""
    engine: str = ""
    """The name of the runtime that its models are timed in (`timing/engines.py`), if one can be."""
    keeps_axes: bool = False
    """Whether operators and Transposes stay on tensors of the axes that they have.

    A runtime may know a Transpose by its axes, or have its fastest kernels for few of them."""
    einsum: bool = False
    """Whether a product may be stated as Einsum where it is not a product of matrices."""
    max_rank: int | None = None
    """The axes that a tensor of a result may have, if the given model has none with more."""
    keep_size: bool = False
    """Whether no constant may be stored in two orders."""
    moves_transposes: bool = False
    """Whether its runtime moves Transposes through operators, and merges those that meet."""
    matrix_second: bool = False
    """Whether, of forms that move the same, those with a constant as second factor are taken.

    A product of many axes is then one product of matrices instead of one for each batch."""
    count_above_speed: bool = False
    """Whether, where Transposes are counted, products may be restated in ways that run slower.

    Those between quantisers are then computed in floats, and where the target has no product with
    flags they may become Einsums."""
    rules: Mapping[tuple[str, str], OpRule] = field(default_factory=dict, repr=False)
    """By domain and operator, the rules that differ from those of standard ONNX."""
    weights: str | None = None
    """The order in which its channels-last kernels have their weights, if it has such kernels."""
    gate: Gate = field(default_factory=Gate)
    """The nodes that stay as they are given."""
    prices: RuntimePrices | None = field(default=None, repr=False)
    """What its kernels take, where that is known."""
    absorbed: Callable[[ir.Graph], set[ir.Node]] = field(default=_nothing, repr=False)
    """The nodes that a runtime takes into their neighbours, so that they take no time."""
    extra_price: ExtraPrice = field(default=_no_extra, repr=False)
    """What nodes take longer that its runtime copies for, or has several kernels for."""
    joined: Callable[[ir.Graph], int] = field(default=_none_joined, repr=False)
    """How many groups of nodes of a graph its runtime joins in the order that they have only."""
    parted: PartedBy = field(default=_nothing_parted, repr=False)
    """What is lost where nodes stay apart that its runtime joins in other orders."""
    profile: Profile | None = field(default=None, repr=False)
    """What the device behind the runtime refuses, where that is asked for."""
    prefers: Objective | None = None
    """What is made least unless asked for, where that is not time for a target with prices."""
    summary: str = ""
    """It in one line."""

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """What can be made least on it: time only by its prices."""
        return tuple(o for o in Objective if o is not Objective.TIME or self.prices is not None)

    @property
    def objective(self) -> Objective:
        """What is made least unless something else is asked for."""
        known = Objective.BYTES if self.prices is None else Objective.TIME
        return self.prefers or known

    def rule_of(self, view: NodeView) -> OpRule:
        """What is known of a node on this target."""
        if self.gate and self.gate.keeps(view):
            return KEPT_AS_GIVEN
        key = (view.node.domain, view.node.op_type)
        rule = self.rules.get(key) or rule_of(view)
        if self.einsum and key == ("", "MatMul"):
            rule = replace(rule, separate=product_as_einsum)
        return rule if self.profile is None else narrowed(rule, self.profile)

    def shuffles_of(self, view: NodeView) -> ShuffleFacts:
        """What a node makes of entries in another order; one that is kept has its own."""
        return NO_SHUFFLES if self.gate and self.gate.keeps(view) else shuffles_of(view)

    @property
    def leaves_bytes(self) -> bool:
        """Whether, where Transposes are counted, bytes may be computed in floats.

        Only a product that reads its factors in other orders gains by that.
        """
        return self.count_above_speed and (self.einsum or self.fused_matmul)

    def lacking(self, model: ir.Model) -> int:
        """How many nodes of a model run in an order that the target has no kernel for."""
        return sum(
            self.rule_of(view).wanted(view) is not None
            or self.kernel_with_other_weight_order(view.node) is not None
            for view in _views(model)
        )

    def kernel_with_other_weight_order(self, node: ir.Node) -> ChannelsLastKernel | None:
        """The kernel of a node, if it has its weights in another order than the target."""
        kernel = KERNELS.get(node.op_type) if node.domain == KERNEL_DOMAIN else None
        if kernel is None or self.weights is None or kernel.operator.weight is None:
            return None
        is_whole = len(node.inputs) == len(kernel.slots) and None not in node.inputs
        if not is_whole or kernel.weights == self.weights:
            return None
        weight = node.inputs[kernel.slots.index(kernel.operator.weight)]
        return None if nhwc.rests_on_default(weight) else kernel

    def held_by_defaults(self, model: ir.Model) -> int:
        """How many nodes stay as they are because a caller may replace their parameters."""
        weights = self.weights
        if weights is None:
            return 0
        views = (view for view in _views(model) if not self.gate.keeps(view))
        return sum(nhwc.is_held_by_defaults(weights, view) for view in views)

    def check_gate(self, model: ir.Model) -> list[str]:
        """Refuse a gate that names nodes which the model does not have; notes on what is idle."""
        return [f"no node is selected by {each!r}" for each in self.gate.check(_views(model))]


def _views(model: ir.Model) -> Iterator[NodeView]:
    return (region.view(node) for region in regions_of(model) for node in region.graph)


def standard_parted(view: NodeView, order: StoredOrder | None) -> Parted | None:
    """What runtimes lose where a node reads its first operand in an order.

    ONNX Runtime where it is known to, and with images any of those that have been measured.
    """
    return _parted(view, order) or images.parted_elsewhere(view, order)


def ort_parted(view: NodeView, order: StoredOrder | None) -> Parted | None:
    """What ONNX Runtime loses where a node reads its first operand in an order."""
    return _parted(view, order) or images.parted_in_ort(view, order)


def _parted(view: NodeView, order: StoredOrder | None) -> Parted | None:
    return ort_norms.parted_norm(view, order) or ort_broadcasts.parted_broadcast(view, order)


ONNX = Target(
    "onnx",
    engine="ort",
    count_above_speed=True,
    rules=nhwc.WAY_BACK,
    moves_transposes=True,
    prices=shipped("onnxruntime_x86_64"),
    absorbed=ort_absorbed.absorbed_from_standard,
    extra_price=ort_quantised_convs.border_price,
    joined=ort_norms.joined_norms,
    parted=standard_parted,
    prefers=Objective.BYTES,
    summary="standard operators only",
)

ORT = Target(
    "ort",
    engine="ort",
    fused_matmul=True,
    fused_attention=True,
    count_above_speed=True,
    rules=ort.RULES | ort_quantised.RULES | nhwc.WAY_BACK,
    moves_transposes=True,
    prices=shipped("onnxruntime_x86_64"),
    absorbed=ort_absorbed.absorbed,
    joined=ort_norms.joined_norms,
    parted=ort_parted,
    summary="ONNX Runtime on a CPU, with operators of its own",
)

OPENVINO = Target(
    "openvino",
    engine="openvino",
    raises=False,
    keeps_axes=True,
    rules=openvino.RULES | nhwc.WAY_BACK,
    prices=shipped("openvino_x86_64"),
    absorbed=openvino.absorbed,
    extra_price=openvino.extra_price,
    summary="OpenVINO on a CPU, by standard operators that it reads",
)


def _channels_last(name: str, weights: str, summary: str) -> Target:
    """A runtime or compiler whose kernels read channels last."""
    return Target(name, rules=nhwc.rules(weights), weights=weights, summary=summary)


NHWC = _channels_last(
    "nhwc",
    HWIO,
    "convolutions, pools and normalisations channels last, as functions of the model, with "
    f"weights as {HWIO}",
)
NHWC_HWOI = _channels_last("nhwc-hwoi", HWOI, f"like nhwc, with weights as {HWOI}")
NHWC_OHWI = _channels_last("nhwc-ohwi", OHWI, f"like nhwc, with weights as {OHWI}")

TORCH = Target(
    "torch",
    fused_attention=True,
    raises_apart=True,
    matrix_second=True,
    rules=nhwc.WAY_BACK,
    summary="PyTorch, which `relayout compile` writes modules for",
)

LITERT = Target(
    "litert",
    fused_matmul=True,
    raises=False,
    max_rank=litert.MAX_RANK,
    rules=litert.RULES,
    weights=litert.WEIGHTS,
    profile=litert.MOVES,
    summary="LiteRT, which `relayout compile` writes files for",
)

TARGETS: Registry[Target] = Registry(
    "target",
    "relayout.targets",
    {
        target.name: target
        for target in (ONNX, ORT, OPENVINO, NHWC, NHWC_HWOI, NHWC_OHWI, TORCH, LITERT)
    },
)


def register_target(target: Target) -> None:
    """Let a target be asked for by its name; a name that is taken is refused."""
    TARGETS.register(target.name, target)


def with_prices(target: str | Target, prices: str | PathLike[str] | RuntimePrices | None) -> Target:
    """A target with other prices, where some are given."""
    found = TARGETS.of(target)
    if prices is None:
        return found
    return replace(
        found, prices=prices if isinstance(prices, RuntimePrices) else read_prices(prices)
    )


def asked_objective(target: str | Target, asked: str | Objective | None) -> Objective:
    """What to make least on a target: what was asked for, or else what the target is for."""
    found = TARGETS.of(target)
    objective = found.objective if asked is None else objective_of(asked)
    if objective not in found.objectives:
        raise RelayoutError(f"there are no prices for the target {found.name!r}")
    return objective


def target_of(
    target: str | Target,
    keep: Sequence[str] = (),
    *,
    einsum: bool | None = False,
    keep_size: bool = False,
    objective: Objective = Objective.BYTES,
    max_rank: int | None = None,
    profile: str | PathLike[str] | Profile | None = None,
) -> Target:
    """The target of a name, or the given one, with selectors of nodes that stay as they are.

    Where `einsum` is left open, products may become Einsums where Transposes are counted, if the
    target has it so and no product with flags of its own.
    """
    if isinstance(keep, str):
        raise RelayoutError(f"keep is a list of selectors, not the string {keep!r}")
    found = TARGETS.of(target)
    if einsum is None:
        may = found.count_above_speed and not found.fused_matmul
        einsum = may and objective is Objective.COUNT
    keep_size = keep_size or found.keep_size
    if profile is not None:
        found = _within(found, profile_of(profile))
    if max_rank is not None:
        found = replace(found, max_rank=max_rank)
    if not keep and (einsum, keep_size) == (found.einsum, found.keep_size):
        return found
    return replace(found, gate=Gate(tuple(keep)), einsum=einsum, keep_size=keep_size)


def _within(target: Target, profile: Profile) -> Target:
    """A target for a device with limits."""
    ranks = [rank for rank in (target.max_rank, profile.max_rank) if rank is not None]
    return replace(target, profile=profile, max_rank=min(ranks, default=None))


def check_opset(target: Target, opset: int | None) -> None:
    """Refuse to bring a model to an opset that the device behind a target does not read."""
    ceiling = None if target.profile is None else target.profile.opset
    if target.profile is not None and ceiling is not None and (opset or 0) > ceiling.most:
        raise RelayoutError(f"{target.profile.name} reads opsets up to {ceiling.most}")
