"""Which operators changed in which opset version, and what a node has to become there.

Every version of every operator of the standard domain is in one of the two tables; a test compares
them with onnx. In the first are versions that only allow more: types, values of attributes,
optional operands, new attributes whose default is what was meant before.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

from relayout.ops.versions import steps
from relayout.ops.versions.old_node import OldNode, Surroundings
from relayout.ops.versions.steps import VersionStep

NEWEST = 28
"""The newest opset version that is in the tables."""

_UNCHANGED: dict[int, str] = {
    6: "Gemm",
    7: "AveragePool",
    8: "Max MaxPool Mean Min Sum",
    9: "Cast Constant Flatten Gemm Greater Less MatMul PRelu",
    10: "AveragePool MaxPool",
    11: (
        "ArgMax ArgMin AveragePool Compress Concat Constant Conv DepthToSpace Equal "
        "Flatten Gather Gemm Hardmax If LogSoftmax Loop LpPool MaxPool MaxUnpool "
        "NonMaxSuppression ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax "
        "ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Scan Slice Softmax "
        "Split Squeeze TopK Unsqueeze"
    ),
    12: "ArgMax ArgMin Clip Constant GatherND Max MaxPool Min Pow ReduceMax ReduceMin",
    13: (
        "Abs Add ArgMax ArgMin Cast Ceil Clip Concat Constant DepthToSpace "
        "DequantizeLinear Div Dropout Equal Exp Expand Flatten Floor Gather "
        "GatherElements GatherND Gemm Greater Identity If IsNaN LRN Less Log Loop MatMul "
        "Max Mean MeanVarianceNormalization Min Mod Mul Neg NegativeLogLikelihoodLoss "
        "NonZero Pad Pow QuantizeLinear Reciprocal ReduceL1 ReduceL2 ReduceLogSum "
        "ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSumSquare Relu "
        "Reshape ScatterElements ScatterND Shape Sigmoid Sign Size Slice "
        "SoftmaxCrossEntropyLoss SpaceToDepth Sqrt Sub Sum Tanh Tile Transpose"
    ),
    14: "Add CumSum Div GRU Identity LSTM Mul RNN Relu Reshape Sub",
    15: "BatchNormalization Pow Shape",
    16: (
        "GreaterOrEqual Identity If LeakyRelu LessOrEqual Loop PRelu Scan ScatterElements "
        "ScatterND Where"
    ),
    18: ("LpPool OptionalGetElement OptionalHasElement Pad Resize ScatterElements ScatterND"),
    19: (
        "AveragePool Cast CastLike Constant DequantizeLinear Equal Identity If Loop Pad "
        "QuantizeLinear Reshape Resize Scan Shape Size"
    ),
    20: "ConstantOfShape IsInf IsNaN ReduceMax ReduceMin",
    21: (
        "Cast CastLike Constant ConstantOfShape DequantizeLinear Flatten Identity If Loop "
        "Pad QLinearMatMul QuantizeLinear Reshape Scan Shape Size Squeeze Transpose "
        "Unsqueeze"
    ),
    22: (
        "Acos Acosh Asin Asinh Atan Atanh Bernoulli Conv ConvTranspose Cos Cosh "
        "DeformConv Det Dropout Elu EyeLike GRU GlobalAveragePool GlobalLpPool "
        "GlobalMaxPool GridSample HardSigmoid HardSwish InstanceNormalization LSTM "
        "LpNormalization LpPool MaxRoiPool MaxUnpool Mish Multinomial "
        "NegativeLogLikelihoodLoss RNN RandomNormal RandomNormalLike RandomUniform "
        "RandomUniformLike RoiAlign Round Selu Sin Sinh Softplus Softsign Tan "
        "ThresholdedRelu"
    ),
    23: (
        "Cast CastLike Constant ConstantOfShape DequantizeLinear Flatten Identity If Loop "
        "Pad QuantizeLinear Reshape Scan Shape Size Squeeze Transpose Unsqueeze"
    ),
    24: (
        "Attention Constant ConstantOfShape DequantizeLinear Flatten Identity If Loop Pad "
        "QuantizeLinear Reshape Scan Shape Size SplitToSequence Squeeze TopK Transpose "
        "Unsqueeze"
    ),
    25: (
        "Attention Cast CastLike Constant ConstantOfShape DequantizeLinear Flatten "
        "Identity If Loop Pad QuantizeLinear Reshape Scan Shape Size Squeeze Transpose "
        "Unsqueeze"
    ),
    28: (
        "BitShift Cast Celu Compress DepthToSpace DequantizeLinear Einsum Mod OneHot "
        "Optional OptionalGetElement OptionalHasElement QuantizeLinear ReverseSequence "
        "SpaceToDepth Unique"
    ),
}

_CHANGED: dict[VersionStep, dict[int, str]] = {
    steps.dropping("consumed_inputs"): {
        6: (
            "Abs Add BatchNormalization Ceil Clip Div Dropout Elu Exp Floor HardSigmoid "
            "InstanceNormalization LeakyRelu Log Max Mean Min Mul Neg PRelu Reciprocal Relu "
            "Sigmoid Sqrt Sub Sum Tanh"
        )
    },
    steps.in_turn(steps.dropping("consumed_inputs"), steps.stating(alpha=1.6732, gamma=1.0507)): {
        6: "Selu"
    },
    steps.cast_by_name: {6: "Cast"},
    steps.refused("it gets its parameters in another form"): {2: "Pad", 6: "Tile", 7: "Upsample"},
    steps.refused("opset 1 states its p as a fraction"): {2: "GlobalLpPool LpPool"},
    steps.refused("its results are stated otherwise"): {3: "GRU", 7: "GRU LSTM RNN"},
    steps.split_sizes: {2: "Split"},
    steps.stating(axis=1): {4: "Concat"},
    steps.in_turn(steps.dropping("consumed_inputs"), steps.operands("shape")): {5: "Reshape"},
    steps.right_aligned: {7: "Add And Div Equal Greater Less Mul Or Pow Sub Xor"},
    steps.slope_per_channel: {7: "PRelu"},
    steps.dropping("broadcast"): {7: "Gemm"},
    steps.as_inference: {7: "BatchNormalization Dropout"},
    steps.spatial_only: {9: "BatchNormalization"},
    steps.without_unused(1): {10: "Dropout", 14: "BatchNormalization"},
    steps.in_turn(steps.without_unused(1), steps.operands("ratio", dtype=np.float32)): {
        12: "Dropout"
    },
    steps.operands("scales", dtype=np.float32): {9: "Upsample"},
    steps.renamed("Resize"): {10: "Upsample"},
    steps.renamed("ScatterElements"): {11: "Scatter"},
    steps.resize_of_ten: {11: "Resize"},
    steps.resize_without_empty: {13: "Resize"},
    steps.slice_operands: {10: "Slice"},
    steps.top_k: {10: "TopK"},
    steps.clip: {11: "Clip"},
    steps.pad: {11: "Pad"},
    steps.padding_at_the_end: {11: "ConvTranspose"},
    steps.index_from_the_front: {11: "OneHot"},
    steps.refused("opset 8 scans batches"): {9: "Scan"},
    steps.flattened: {13: "Hardmax LogSoftmax Softmax"},
    steps.squeeze: {13: "Squeeze"},
    steps.operands("axes"): {13: "Unsqueeze"},
    steps.operands("split"): {13: "Split"},
    steps.split_evenly: {18: "Split"},
    steps.reduction: {
        13: "ReduceSum",
        18: (
            "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin "
            "ReduceProd ReduceSumSquare"
        ),
    },
    steps.of_floats: {13: "Erf", 28: "ReduceLogSum ReduceLogSumExp"},
    steps.stating(coordinate_transformation_mode="output_half_pixel"): {16: "RoiAlign"},
    steps.sampling_mode: {20: "GridSample"},
    steps.transform_axis: {20: "DFT"},
    steps.parameters_per_channel: {21: "GroupNormalization"},
    steps.whole_windows: {22: "AveragePool MaxPool"},
    steps.cast_of_infinity: {24: "Cast"},
    steps.cast_like_of_infinity: {24: "CastLike"},
    steps.range_of_halves: {27: "Range"},
}


def _same(_old: OldNode) -> None:
    """Nothing has to change."""


def _table() -> Mapping[tuple[str, int], VersionStep]:
    changes = [(_same, _UNCHANGED), *_CHANGED.items()]
    return {
        (op_type, version): step
        for step, versions in changes
        for version, names in versions.items()
        for op_type in names.split()
    }


CHANGES: Mapping[tuple[str, int], VersionStep] = _table()
"""What to do with a node of an operator when the model is brought to a version."""


def restated(
    node: onnx.NodeProto, version: int, around: Surroundings
) -> list[onnx.NodeProto] | None:
    """The nodes that state in one version what a node stated in the version before.

    None where it can stay as it is. Raises `RelayoutError` where it cannot be stated.
    """
    step = CHANGES.get((node.op_type, version), _same)
    if step is _same:
        return None
    old = OldNode(onnx.NodeProto(), around)
    old.node.CopyFrom(node)
    step(old)
    return old.nodes
