"""Attentions with their heads side by side, as operators that need no Transposes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import rank_of
from relayout.graph.region import Region
from relayout.layout.transport import Refusal
from relayout.rewrite.attention_heads import HEADS_SECOND, Heads, Ports, heads_of
from relayout.rewrite.attention_match import Core, core_of, leave_numbers, merges
from relayout.rewrite.attention_write import STANDARD_SINCE, AttentionWriter
from relayout.targets.target import Target

STANDARD_TYPES = (
    ir.DataType.FLOAT,
    ir.DataType.FLOAT16,
    ir.DataType.BFLOAT16,
    ir.DataType.DOUBLE,
)
CONTRIB_TYPES = (ir.DataType.FLOAT, ir.DataType.FLOAT16)


@dataclass(frozen=True, slots=True)
class RaiseAttention:
    """An attention spelt out becomes one operator that reads and writes heads side by side.

    Given:  q, k, v = Transpose<perm=[0,2,1,3]>(Reshape(.., [B,S,H,D])), k transposed again;
            y = MatMul(Softmax(Add(Mul(MatMul(q, k), scale), mask)), v);
            z = Reshape(Transpose<perm=[0,2,1,3]>(y), [B,S,H·D])
    Result: z = Attention<q_num_heads=H, kv_num_heads=H, scale>(.., .., .., mask) from opset 23 on,
            z = com.microsoft.MultiHeadAttention where only the target has one

    Scores that are read elsewhere stay. Where a whole row is masked by -inf, Attention gives 0.
    """

    target: Target
    name: str = "raise to attention operator"
    op_types: tuple[str, ...] = ("Softmax",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        if not _has_operator(editor.region, self.target):
            return None
        core = raisable(node, editor.region, self.target)
        if isinstance(core, Refusal):
            return None
        writer = AttentionWriter(editor, core.node)
        return writer.put(writer.raised(core), core.ports)


def raisable(softmax: ir.Node, region: Region, target: Target) -> Core | Refusal:
    """The attention around a Softmax that an operator can stand for, or why none can."""
    standard = region.version >= STANDARD_SINCE or not target.fused_attention
    dtype = softmax.inputs[0].dtype if softmax.inputs[0] is not None else None
    if dtype not in (STANDARD_TYPES if standard else CONTRIB_TYPES):
        return Refusal("the operator has no kernel for its type")
    core = core_of(softmax, region, anywhere=target.raises_apart)
    if isinstance(core, Refusal):
        return core
    if any(target.gate.keeps(region.view(node)) for node in core.replaced):
        return Refusal("a part of it stays as it is, as asked")
    if not _can_return(core.result, core.ports.query):
        return Refusal("the length of Q cannot be written down once more")
    has_numbers = not core.guarded or leave_numbers(core.masks)
    if not standard and not has_numbers:
        return Refusal("MultiHeadAttention gives NaN for a row that is masked as a whole")
    if _has_operator(region, target):
        return core
    return _needs_newer_opset(or_contrib=has_numbers and dtype in CONTRIB_TYPES)


def _needs_newer_opset(*, or_contrib: bool) -> Refusal:
    ways = f"--opset {STANDARD_SINCE}{' or --target ort' if or_contrib else ''}"
    return Refusal(f"from opset {STANDARD_SINCE} on it can be one operator; {ways} allows it")


def _has_operator(region: Region, target: Target) -> bool:
    return region.version >= STANDARD_SINCE or target.fused_attention


@dataclass(frozen=True, slots=True)
class JoinHeads:
    """An Attention of operands whose heads were moved forward reads them where they were.

    Given:  q, k, v = Transpose<perm=[0,2,1,3]>(Reshape(.., [B,S,H,D])); y = Attention(q, k, v);
            z = Reshape(Transpose<perm=[0,2,1,3]>(y), [B,S,H·D])
    Result: z = Attention<q_num_heads=H, kv_num_heads=H>(.., .., ..)
    """

    name: str = "join heads of Attention"
    op_types: tuple[str, ...] = ("Attention",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        region = editor.region
        view = region.view(node)
        extra = any(map(view.has, range(4, view.arity))) or any(
            map(view.uses_result, range(1, view.results))
        )
        if rank_of(node.inputs[0]) != 4 or extra or view.unknown_attribute is not None:
            return None
        query, key, value = (heads_of(value, HEADS_SECOND, region) for value in node.inputs[:3])
        if query is None or key is None or value is None:
            return None
        ports = Ports(query, key, value)
        if not all(map(_is_known, ports)) or not merges(node.outputs[0], ports, region):
            return None
        writer = AttentionWriter(editor, node)
        attributes = {name: attribute.value for name, attribute in node.attributes.items()}
        operands = [*writer.operands(ports), *node.inputs[3:]]
        return writer.put(writer.add("Attention", operands, attributes, ports), ports)


def _is_known(heads: Heads) -> bool:
    return not heads.heads.symbols and not heads.depth.symbols and heads.scaling.is_one


def _can_return(result: ir.Value, query: Heads) -> bool:
    """Whether the shape of the product can be written down once more."""
    return rank_of(result) == 4 or not query.length.symbols
