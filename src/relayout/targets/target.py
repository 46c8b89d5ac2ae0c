"""What a runtime can run beyond standard ONNX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from relayout.errors import RelayoutError
from relayout.graph.read import NodeView
from relayout.graph.region import KERNEL_DOMAIN, regions_of
from relayout.ops.einsum import product_as_einsum
from relayout.ops.measure import Objective
from relayout.ops.registry import rule_of, shuffles_of
from relayout.ops.rule import OpRule, barrier
from relayout.ops.shuffles import NO_SHUFFLES, ShuffleFacts
from relayout.registry.registry import Registry
from relayout.targets import nhwc, ort, ort_quantised
from relayout.targets.channels_last import HWIO, HWOI, KERNELS, OHWI, ChannelsLastKernel
from relayout.targets.gate import Gate

KEPT_AS_GIVEN = barrier("it stays as it is, as asked")


@dataclass(frozen=True, slots=True)
class Target:
    """What a runtime can run, as far as the choice of operators depends on it."""

    name: str
    fused_matmul: bool = False
    """Whether it has `com.microsoft.FusedMatMul`, a MatMul with transA and transB."""
    fused_attention: bool = False
    """Whether it has `com.microsoft.MultiHeadAttention`."""
    einsum: bool = False
    """Whether a product may be stated as Einsum where it is not a product of matrices."""
    keep_size: bool = False
    """Whether no constant may be stored in two orders."""
    count_above_speed: bool = False
    """Whether, where Transposes are counted, products may become Einsums and bytes floats."""
    rules: Mapping[tuple[str, str], OpRule] = field(default_factory=dict, repr=False)
    """By domain and operator, the rules that differ from those of standard ONNX."""
    weights: str | None = None
    """The order in which its channels-last kernels have their weights, if it has such kernels."""
    gate: Gate = field(default_factory=Gate)
    """The nodes that stay as they are given."""
    summary: str = ""
    """It in one line."""

    def rule_of(self, view: NodeView) -> OpRule:
        """What is known of a node on this target."""
        if self.gate and self.gate.keeps(view):
            return KEPT_AS_GIVEN
        key = (view.node.domain, view.node.op_type)
        rule = self.rules.get(key) or rule_of(view)
        is_product = self.einsum and key == ("", "MatMul")
        return replace(rule, separate=product_as_einsum) if is_product else rule

    def shuffles_of(self, view: NodeView) -> ShuffleFacts:
        """What a node makes of entries in another order; one that is kept has its own."""
        return NO_SHUFFLES if self.gate and self.gate.keeps(view) else shuffles_of(view)

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

    def check_gate(self, model: ir.Model) -> None:
        """Refuse a gate that names nodes which the model does not have."""
        self.gate.check(_views(model))


def _views(model: ir.Model) -> Iterator[NodeView]:
    return (region.view(node) for region in regions_of(model) for node in region.graph)


ONNX = Target(
    "onnx",
    count_above_speed=True,
    rules=nhwc.WAY_BACK,
    summary="standard operators only",
)

ORT = Target(
    "ort",
    fused_matmul=True,
    fused_attention=True,
    rules=ort.RULES | ort_quantised.RULES | nhwc.WAY_BACK,
    summary="ONNX Runtime on a CPU, with operators of its own",
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
    rules=nhwc.WAY_BACK,
    summary="PyTorch, which `relayout compile` writes modules for",
)

TARGETS: Registry[Target] = Registry(
    "target",
    "relayout.targets",
    {target.name: target for target in (ONNX, ORT, NHWC, NHWC_HWOI, NHWC_OHWI, TORCH)},
)


def register_target(target: Target) -> None:
    """Let a target be asked for by its name; a name that is taken is refused."""
    TARGETS.register(target.name, target)


def target_of(
    target: str | Target,
    keep: Sequence[str] = (),
    *,
    einsum: bool | None = False,
    keep_size: bool = False,
    objective: Objective = Objective.BYTES,
) -> Target:
    """The target of a name, or the given one, with selectors of nodes that stay as they are.

    Where `einsum` is left open, products may become Einsums if the target has it so for the
    objective.
    """
    if isinstance(keep, str):
        raise RelayoutError(f"keep is a list of selectors, not the string {keep!r}")
    found = TARGETS.of(target)
    if einsum is None:
        einsum = found.count_above_speed and objective is Objective.COUNT
    keep_size = keep_size or found.keep_size
    if not keep and (einsum, keep_size) == (found.einsum, found.keep_size):
        return found
    return replace(found, gate=Gate(tuple(keep)), einsum=einsum, keep_size=keep_size)
