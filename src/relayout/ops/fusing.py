"""What each operator may share a kernel with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import onnx_ir as ir

from relayout.graph.read import NodeView, shape_of
from relayout.graph.region import KERNEL_DOMAIN
from relayout.ops.kind import Kind

KindRule: TypeAlias = Callable[[NodeView], Kind]


@dataclass(frozen=True, slots=True)
class Fusing:
    """The kind of one node, and which of its operands are no tensors to the kernel."""

    kind: Kind
    parameters: tuple[int, ...] = ()
    """Constant operands that only say how the operator works, as attributes do."""
    opaque_for: str = ""
    """Why nothing shares its kernel: opaque, data_dependent or unknown_op."""


def fuses_as(view: NodeView) -> Fusing:
    """How a node takes part in kernels, as TVM has it."""
    name = standard_name(view.node)
    rule = None if name is None else KINDS.get(name)
    if rule is None:
        return Fusing(Kind.OPAQUE, opaque_for="unknown_op")
    kind = rule if isinstance(rule, Kind) else rule(view)
    if kind is not Kind.OPAQUE and _is_data_dependent(view, name or ""):
        return Fusing(Kind.OPAQUE, _parameters(view, name or ""), "data_dependent")
    if kind is Kind.OPAQUE or (name != "Split" and _results_in_use(view) > 1):
        return Fusing(Kind.OPAQUE, _parameters(view, name or ""), "opaque")
    return Fusing(kind, _parameters(view, name or ""))


def standard_name(node: ir.Node) -> str | None:
    """The standard operator that a node is, in any layout; other domains' names with the domain."""
    if node.domain == KERNEL_DOMAIN:
        found = re.match(r"(\w+?)\dd(_|$)", node.op_type)
        return found[1] if found else None
    if node.domain in {"", "ai.onnx"}:
        return node.op_type
    return f"{node.domain}.{node.op_type}"


def _parameters(view: NodeView, name: str) -> tuple[int, ...]:
    """Of the operands that may only parametrise those that are constant."""
    places = PARAMETERS.get(name, ())
    return tuple(place for place in places if view.has(place) and view.is_constant(place))


def _is_data_dependent(view: NodeView, name: str) -> bool:
    """Whether the lengths of a result depend on values that only the run will tell."""
    shapes = (shape_of(value) for value in view.node.outputs)
    if all(shape is not None and all(isinstance(n, int) for n in shape) for shape in shapes):
        return False
    return any(view.has(place) and not view.is_constant(place) for place in SHAPING.get(name, ()))


def _results_in_use(view: NodeView) -> int:
    return sum(view.uses_result(index) for index in range(view.results))


def _clip(view: NodeView) -> Kind:
    """A bound that is computed is an operand like others."""
    is_fixed = all(not view.has(place) or view.is_constant(place) for place in (1, 2))
    return Kind.ELEMENTWISE if is_fixed else Kind.BROADCAST


def _batch_normalization(view: NodeView) -> Kind:
    """A scale and a shift per channel, unless it also learns."""
    return Kind.OPAQUE if view.integer("training_mode", 0) else Kind.BROADCAST


def _dropout(view: NodeView) -> Kind:
    """An identity at inference."""
    training = view.constant(2) if view.has(2) else None
    is_inference = not view.has(2) or (training is not None and not bool(training.item()))
    return Kind.ELEMENTWISE if is_inference else Kind.OPAQUE


_NAMES: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.ELEMENTWISE: """
            Abs Acos Acosh Asin Asinh Atan Atanh BitCast BitwiseNot Cast CastLike Ceil Celu
            ConstantOfShape Cos Cosh DequantizeLinear Elu Erf Exp EyeLike Floor Gelu HardSigmoid
            HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg Not QuantizeLinear Reciprocal
            Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt SwiGLU Swish Tan
            Tanh ThresholdedRelu Trilu""",
        Kind.BROADCAST: """
            Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Expand Greater
            GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or PRelu Pow Sub Sum Tile
            Unsqueeze Where Xor""",
        Kind.INJECTIVE: """
            AffineGrid CenterCropPad Concat DepthToSpace Flatten Gather GatherElements
            GatherND GridSample Pad Reshape Resize ReverseSequence RotaryEmbedding Size Slice
            SpaceToDepth Split Squeeze Transpose Upsample""",
        Kind.REDUCTION: """
            ArgMax ArgMin ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean
            ReduceMin ReduceProd ReduceSum ReduceSumSquare""",
        Kind.COMPLEX: """
            Attention AveragePool CausalConvWithState Conv ConvInteger ConvTranspose DeformConv
            Einsum Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool GroupNormalization Hardmax
            InstanceNormalization LayerNormalization LinearAttention LogSoftmax LpNormalization
            LpPool MatMul MatMulInteger MaxPool MaxRoiPool MeanVarianceNormalization
            NegativeLogLikelihoodLoss OneHot QLinearConv QLinearMatMul RMSNormalization RoiAlign
            Softmax com.microsoft.FusedMatMul""",
        Kind.OPAQUE: """
            Bernoulli BlackmanWindow Col2Im Compress ConcatFromSequence Constant CumProd CumSum
            DFT Det DynamicQuantizeLinear GRU HammingWindow HannWindow If ImageDecoder LRN LSTM
            Loop MaxUnpool MelWeightMatrix Multinomial NonMaxSuppression NonZero Optional
            OptionalGetElement OptionalHasElement RNN RandomNormal RandomNormalLike RandomUniform
            RandomUniformLike Range RegexFullMatch STFT Scan Scatter ScatterElements ScatterND
            SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength
            SequenceMap Shape SoftmaxCrossEntropyLoss SplitToSequence StringConcat
            StringNormalizer StringSplit TensorScatter TfIdfVectorizer TopK Unique
            ai.onnx.ml.ArrayFeatureExtractor ai.onnx.ml.Binarizer ai.onnx.ml.CastMap
            ai.onnx.ml.CategoryMapper ai.onnx.ml.DictVectorizer ai.onnx.ml.FeatureVectorizer
            ai.onnx.ml.Imputer ai.onnx.ml.LabelEncoder ai.onnx.ml.LinearClassifier
            ai.onnx.ml.LinearRegressor ai.onnx.ml.Normalizer ai.onnx.ml.OneHotEncoder
            ai.onnx.ml.SVMClassifier ai.onnx.ml.SVMRegressor ai.onnx.ml.Scaler
            ai.onnx.ml.TreeEnsemble ai.onnx.ml.TreeEnsembleClassifier
            ai.onnx.ml.TreeEnsembleRegressor ai.onnx.ml.ZipMap
            ai.onnx.preview.FlexAttention ai.onnx.preview.training.Adagrad
            ai.onnx.preview.training.Adam ai.onnx.preview.training.Gradient
            ai.onnx.preview.training.Momentum""",
    }
)

KINDS: Mapping[str, Kind | KindRule] = MappingProxyType(
    {name: kind for kind, names in _NAMES.items() for name in names.split()}
    | {"BatchNormalization": _batch_normalization, "Clip": _clip, "Dropout": _dropout}
)

_REDUCTIONS = tuple(name for name in _NAMES[Kind.REDUCTION].split() if name.startswith("Reduce"))

SHAPING: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "AffineGrid": (1,),
        "CenterCropPad": (1,),
        "ConstantOfShape": (0,),
        "Expand": (1,),
        "OneHot": (1,),
        "Pad": (1, 3),
        "Reshape": (1,),
        "Resize": (1, 2, 3),
        "Slice": (1, 2, 3, 4),
        "Split": (1,),
        "Squeeze": (1,),
        "Tile": (1,),
        "Unsqueeze": (1,),
        "Upsample": (1,),
    }
    | dict.fromkeys(_REDUCTIONS, (1,))
)
"""Operands whose values say how long the axes of a result are."""

PARAMETERS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        **SHAPING,
        "CastLike": (1,),
        "Clip": (1, 2),
        "CumProd": (1,),
        "CumSum": (1,),
        "Dropout": (1, 2),
        "Pad": (1, 2, 3),
        "TopK": (1,),
        "Trilu": (1,),
    }
)
"""Operands that, where they are constant, only say how the operator works."""
