"""Operators of classical machine learning, as far as they are about numbers."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from relayout.backends.torch.lower.trees import tree_ensemble
from relayout.backends.torch.program.call import Call, Lowering
from relayout.backends.torch.program.scalars import literal
from relayout.backends.torch.runtime import lookup as runtime
from relayout.layout.transport import Array

DOMAIN = "ai.onnx.ml"


def binarizer(call: Call) -> str:
    x = call.let(call.tensor(0), "x")
    return f"({x} > {literal(call.real('threshold', 0.0))}).to({x}.dtype)"


def array_feature_extractor(call: Call) -> str:
    """Elements along the last axis; a vector is taken for a row."""
    rank = call.rank(0)
    if rank is None:
        raise call.refusal("has an operand of unknown rank")
    row = ".unsqueeze(0)" if rank == 1 else ""
    return f"{call.tensor(0)}{row}.index_select(-1, {call.tensor(1)}.flatten())"


def label_encoder(call: Call) -> str:
    keys, values = _listed(call, "keys"), _listed(call, "values")
    if keys is None or values is None:
        raise call.refusal("maps strings, of which torch has no tensors")
    is_nan = np.isnan(keys)
    by_key = dict(zip(keys[~is_nan].tolist(), values[~is_nan].tolist(), strict=True))
    known = sorted(by_key)
    found = [*map(by_key.get, known), *values[is_nan].tolist()[-1:], _default(call, values)]
    tables = (
        call.table(np.array(known, keys.dtype), "keys"),
        call.table(np.array(found, values.dtype), "values"),
    )
    return call.helper(runtime.encoded, call.tensor(0), *tables, bool(is_nan.any()))


def _listed(call: Call, name: str) -> Array | None:
    """Keys or values, unless they are strings."""
    whole, real = call.ints(f"{name}_int64s"), call.view.floats(f"{name}_floats")
    if whole is not None:
        return np.array(whole, np.int64)
    if real is not None:
        return np.array(real, np.float32)
    attribute = call.view.node.attributes.get(f"{name}_tensor")
    tensor = None if attribute is None else attribute.as_tensor()
    return None if tensor is None or tensor.dtype == ir.DataType.STRING else tensor.numpy()


def _default(call: Call, values: Array) -> object:
    """What numbers that are no keys become."""
    if "values_floats" in call.view.node.attributes:
        return call.real("default_float", -0.0)
    if "values_int64s" in call.view.node.attributes:
        return call.integer("default_int64", -1)
    if "default_tensor" in call.view.node.attributes:
        return call.attribute_array("default_tensor").item()
    return -0.0 if values.dtype.kind == "f" else -1


LOWERINGS: dict[str, Lowering] = {
    "ArrayFeatureExtractor": array_feature_extractor,
    "Binarizer": binarizer,
    "LabelEncoder": label_encoder,
    "TreeEnsemble": tree_ensemble,
}
