"""Operators that make tensors from little or nothing, signals, text, and other domains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from relayout.graph.read import NodeView, Parameter
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops.rule import OpRule, barrier, lead_only

if TYPE_CHECKING:
    from relayout.layout.permutation import Permutation

DFT_AXIS = Parameter("axis", 2)

ML = "ai.onnx.ml"
TRAINING = "ai.onnx.preview.training"


def fourier(view: NodeView, order: Permutation) -> Transport | Refusal:
    """The signal's axis may move; the last axis holds real and imaginary parts."""
    if not order.fixes(order.rank - 1):
        return Refusal("DFT keeps real and imaginary parts in the last axis")
    given = DFT_AXIS.read_ints(view)
    if isinstance(given, Refusal):
        return given
    is_operand = DFT_AXIS.is_operand(view)
    (axis,) = given or ((-2,) if is_operand else (1,))
    moved = order.position(axis)
    if is_operand:
        return lead_only(view, order, Changes(constants={2: np.asarray(moved, np.int64)}))
    return lead_only(view, order, Changes({"axis": moved}))


def string_split(view: NodeView, order: Permutation) -> Transport:
    """The parts of a string lie along a new last axis; their number has the axes of the text."""
    results = (order.insert({order.rank}), order)
    return Transport((order,), results[: view.results])


def pull_string_split(_view: NodeView, result: Permutation) -> Permutation | Refusal:
    if not result.fixes(result.rank - 1):
        return Refusal("StringSplit puts the parts along the last axis")
    return result.drop({result.rank - 1})


RULES = (
    OpRule(("DFT",), fourier),
    OpRule(("StringSplit",), string_split, pull_string_split),
    OpRule(("Binarizer", "CategoryMapper", "LabelEncoder"), lead_only, domain=ML),
    barrier(
        *("Constant", "ConstantOfShape", "Range", "HannWindow", "HammingWindow"),
        *("BlackmanWindow", "MelWeightMatrix", "ImageDecoder"),
        reason="a tensor made from parameters has no operand to permute",
    ),
    barrier("EyeLike", reason="EyeLike reads only the shape of its operand"),
    barrier(
        *("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike"),
        *("Bernoulli", "Multinomial"),
        reason="random numbers are drawn in element order",
    ),
    barrier("STFT", reason="STFT fixes the meaning of each of its axes: batch, signal, parts"),
    barrier(
        *("StringNormalizer", "TfIdfVectorizer"),
        reason="strings are read as a list, or as one row of a table",
    ),
    barrier("NonMaxSuppression", reason="NonMaxSuppression fixes the axes of its boxes and scores"),
    barrier(
        *("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"),
        reason="a loss fixes its class axis and reads its labels beside it",
    ),
    barrier(
        *("ArrayFeatureExtractor", "CastMap", "DictVectorizer", "FeatureVectorizer", "Imputer"),
        *("LinearClassifier", "LinearRegressor", "Normalizer", "OneHotEncoder", "SVMClassifier"),
        *("SVMRegressor", "Scaler", "TreeEnsemble", "TreeEnsembleClassifier"),
        *("TreeEnsembleRegressor", "ZipMap"),
        reason="rows of features fix the meaning of the axes",
        domain=ML,
    ),
    barrier(
        *("Adagrad", "Adam", "Gradient", "Momentum"),
        reason="only inference is restated, not training",
        domain=TRAINING,
    ),
)
