"""Operators that make tensors from little or nothing, signals, text, and other domains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from relayout.graph.read import NodeView, Parameter
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops.facts import Evaluation, LengthFacts, NumberFacts, OpFacts
from relayout.ops.kernels import COMPLEX, ELEMENTWISE, OPAQUE, KernelFacts
from relayout.ops.kind import Kind
from relayout.ops.lengths import entries
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


MADE = barrier("a tensor made from parameters has no operand to permute")
LOSS = barrier("a loss fixes its class axis and reads its labels beside it")
INTEGERS = NumberFacts(Evaluation.INTEGERS)

FACTS: tuple[OpFacts, ...] = (
    OpFacts(("DFT",), OpRule(fourier), kernel=OPAQUE),
    OpFacts(("StringSplit",), OpRule(string_split, pull_string_split), kernel=OPAQUE),
    OpFacts(
        ("ConstantOfShape",),
        MADE,
        kernel=KernelFacts(Kind.ELEMENTWISE, shaping=(0,)),
        lengths=LengthFacts(shape=entries.filled, is_shaped_by_constants=True),
        numbers=INTEGERS,
    ),
    OpFacts(
        ("Range",),
        MADE,
        kernel=OPAQUE,
        lengths=LengthFacts(shape=entries.counted_up, is_shaped_by_constants=True),
        numbers=INTEGERS,
    ),
    OpFacts(
        (
            *("Constant", "HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix"),
            "ImageDecoder",
        ),
        MADE,
        kernel=OPAQUE,
    ),
    OpFacts(
        ("EyeLike",),
        barrier("EyeLike reads only the shape of its operand"),
        kernel=ELEMENTWISE,
        numbers=INTEGERS,
    ),
    OpFacts(
        (
            *("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike"),
            *("Bernoulli", "Multinomial"),
        ),
        barrier("random numbers are drawn in element order"),
        kernel=OPAQUE,
        numbers=NumberFacts(draws=True),
    ),
    OpFacts(
        ("STFT",),
        barrier("STFT fixes the meaning of each of its axes: batch, signal, parts"),
        kernel=OPAQUE,
    ),
    OpFacts(
        ("StringNormalizer", "TfIdfVectorizer"),
        barrier("strings are read as a list, or as one row of a table"),
        kernel=OPAQUE,
    ),
    OpFacts(
        ("NonMaxSuppression",),
        barrier("NonMaxSuppression fixes the axes of its boxes and scores"),
        kernel=OPAQUE,
    ),
    OpFacts(("NegativeLogLikelihoodLoss",), LOSS, kernel=COMPLEX),
    OpFacts(("SoftmaxCrossEntropyLoss",), LOSS, kernel=OPAQUE),
    OpFacts(
        ("Binarizer", "CategoryMapper", "LabelEncoder"),
        OpRule(lead_only),
        domain=ML,
        kernel=OPAQUE,
        computes_only=False,
    ),
    OpFacts(
        (
            *("ArrayFeatureExtractor", "CastMap", "DictVectorizer", "FeatureVectorizer"),
            *("Imputer", "LinearClassifier", "LinearRegressor", "Normalizer", "OneHotEncoder"),
            *("SVMClassifier", "SVMRegressor", "Scaler", "TreeEnsemble"),
            *("TreeEnsembleClassifier", "TreeEnsembleRegressor", "ZipMap"),
        ),
        barrier("rows of features fix the meaning of the axes"),
        domain=ML,
        kernel=OPAQUE,
        computes_only=False,
    ),
    OpFacts(
        ("Adagrad", "Adam", "Gradient", "Momentum"),
        barrier("only inference is restated, not training"),
        domain=TRAINING,
        kernel=OPAQUE,
        computes_only=False,
    ),
)
