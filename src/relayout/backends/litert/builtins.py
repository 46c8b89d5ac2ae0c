"""The builtins that are written: their options in the schema, and the versions they came with."""

from __future__ import annotations

import numpy as np

from relayout.backends.litert.flat_graph import FlatOperator

OPTIONS = {
    "ADD": "Add",
    "ARG_MAX": "ArgMax",
    "ARG_MIN": "ArgMin",
    "AVERAGE_POOL_2D": "Pool2D",
    "BATCH_MATMUL": "BatchMatMul",
    "CAST": "Cast",
    "CONCATENATION": "Concatenation",
    "CONV_2D": "Conv2D",
    "CONV_3D": "Conv3D",
    "CUMSUM": "Cumsum",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2D",
    "DEPTH_TO_SPACE": "DepthToSpace",
    "DIV": "Div",
    "FULLY_CONNECTED": "FullyConnected",
    "GATHER": "Gather",
    "GELU": "Gelu",
    "LEAKY_RELU": "LeakyRelu",
    "LOCAL_RESPONSE_NORMALIZATION": "LocalResponseNormalization",
    "MAX_POOL_2D": "Pool2D",
    "MEAN": "Reducer",
    "MIRROR_PAD": "MirrorPad",
    "MUL": "Mul",
    "ONE_HOT": "OneHot",
    "REDUCE_ALL": "Reducer",
    "REDUCE_ANY": "Reducer",
    "REDUCE_MAX": "Reducer",
    "REDUCE_MIN": "Reducer",
    "REDUCE_PROD": "Reducer",
    "RESHAPE": "Reshape",
    "RESIZE_BILINEAR": "ResizeBilinear",
    "RESIZE_NEAREST_NEIGHBOR": "ResizeNearestNeighbor",
    "SOFTMAX": "Softmax",
    "SPACE_TO_DEPTH": "SpaceToDepth",
    "SPLIT": "Split",
    "SPLIT_V": "SplitV",
    "STRIDED_SLICE": "StridedSlice",
    "SUB": "Sub",
    "SUM": "Reducer",
    "TRANSPOSE_CONV": "TransposeConv",
}
"""By builtin, the table of the schema with its options; builtins that are not here have none."""

ACTIVATIONS = {"RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}
"""What can be part of another builtin, by the number that the schema has for it."""

FUSING = frozenset(
    {
        *("ADD", "SUB", "MUL", "DIV", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"),
        *("AVERAGE_POOL_2D", "MAX_POOL_2D", "TRANSPOSE_CONV"),
    }
)
"""Builtins that an activation can be part of."""

SAME, VALID = 0, 1
"""How windows reach over borders, by the numbers that the schema has."""

INT8_VERSIONS = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"), 3),
    "FULLY_CONNECTED": 4,
    **dict.fromkeys(("DEQUANTIZE", "LEAKY_RELU", "RESIZE_BILINEAR"), 2),
    **dict.fromkeys(("RESIZE_NEAREST_NEIGHBOR", "RELU", "PADV2", "PAD"), 2),
    **dict.fromkeys(("ADD", "SUB", "MUL", "CONCATENATION", "AVERAGE_POOL_2D", "MEAN"), 2),
    **dict.fromkeys(("MAX_POOL_2D", "SOFTMAX", "LOGISTIC", "TANH", "SPLIT", "TRANSPOSE"), 2),
    **dict.fromkeys(("SLICE", "STRIDED_SLICE", "RELU6", "SUM", "BATCH_MATMUL"), 2),
}
"""The version since which a builtin has kernels for bytes, where that is not the first one."""


def version_of(operator: FlatOperator) -> int:
    """The version of a builtin that has what an operator asks for."""
    name, options = operator.builtin, operator.options
    version = 1
    first = operator.inputs[0] if operator.inputs else None
    kinds = {tensor.dtype for tensor in operator.inputs if tensor is not None}
    if np.dtype(np.int8) in kinds:
        version = INT8_VERSIONS.get(name, 1)
    if name == "BROADCAST_TO":
        version = 2
    if name == "TRANSPOSE_CONV" and len(operator.inputs) > 3:
        version = 3
    if name == "FULLY_CONNECTED" and options.get("keepNumDims"):
        version = max(version, 5)
    if name == "DEPTHWISE_CONV_2D" and max(_dilation(operator)) > 1:
        version = max(version, 2)
    if name in {"RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"} and options.get("halfPixelCenters"):
        version = 3
    if name in {"TRANSPOSE", "SLICE", "PAD", "PADV2"} and first is not None and first.rank > 4:
        version = max(version, 4)
    return version


def _dilation(operator: FlatOperator) -> tuple[int, int]:
    options = operator.options
    return options.get("dilationHFactor", 1), options.get("dilationWFactor", 1)
