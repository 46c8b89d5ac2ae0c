"""Operators that make tensors from numbers."""

from __future__ import annotations

import onnx_ir as ir

from relayout.backends.torch.lower.activation import real
from relayout.backends.torch.program.call import Call, Lowering, Results, Several
from relayout.backends.torch.program.scalars import literal
from relayout.backends.torch.runtime import constants as runtime
from relayout.graph.read import constant_of

ON_DEVICE = "device=w.device"


def constant(call: Call) -> Results:
    """Nothing is written: constants are weights, or numbers, wherever they are read."""
    if constant_of(call.view.node.outputs[0]) is None:
        raise call.refusal("holds something torch has no tensor for")
    return ()


def constant_of_shape(call: Call) -> str:
    attribute = call.view.node.attributes.get("value")
    tensor = None if attribute is None else attribute.as_tensor()
    dtype = ir.DataType.FLOAT if tensor is None else tensor.dtype
    value = 0.0 if tensor is None else tensor.numpy().reshape(-1)[0].item()
    value = call.fitted(value) if dtype == ir.DataType.FLOAT else value
    shape = call.list_text(0)
    return f"torch.full({shape}, {literal(value)}, dtype={call.torch_dtype(dtype)}, {ON_DEVICE})"


def range_(call: Call) -> str:
    dtype = call.dtype(0) or ir.DataType.INT64
    bounds = ", ".join(call.number_text(index) for index in range(3))
    return f"torch.arange({bounds}, dtype={call.torch_dtype(dtype)}, {ON_DEVICE})"


def eye_like(call: Call) -> str:
    shift = call.integer("k", 0)
    dtype = call.integer("dtype", 0) or call.dtype(0) or ir.DataType.FLOAT
    return call.helper(runtime.eye_like, call.tensor(0), shift, call.torch_dtype(dtype))


def _drawn_dtype(call: Call, default: ir.DataType | None = None) -> str:
    return call.torch_dtype(call.integer("dtype", 0) or default or ir.DataType.FLOAT)


def random_uniform(call: Call) -> str:
    low, high = call.real("low", 0.0), call.real("high", 1.0)
    options = f"dtype={_drawn_dtype(call)}, {ON_DEVICE}"
    return (
        f"torch.rand({list(call.ints('shape') or ())}, {options}) * {high - low} + {literal(low)}"
    )


def random_normal(call: Call) -> str:
    options = f"dtype={_drawn_dtype(call)}, {ON_DEVICE}"
    shape = list(call.ints("shape") or ())
    return (
        f"torch.randn({shape}, {options}) * {real(call, 'scale', 1.0)} + {real(call, 'mean', 0.0)}"
    )


def random_uniform_like(call: Call) -> str:
    low, high = call.real("low", 0.0), call.real("high", 1.0)
    dtype = _drawn_dtype(call, call.dtype(0))
    return f"torch.rand_like({call.tensor(0)}, dtype={dtype}) * {high - low} + {literal(low)}"


def random_normal_like(call: Call) -> str:
    dtype = _drawn_dtype(call, call.dtype(0))
    text = f"torch.randn_like({call.tensor(0)}, dtype={dtype})"
    return f"{text} * {real(call, 'scale', 1.0)} + {real(call, 'mean', 0.0)}"


def bernoulli(call: Call) -> str:
    return f"torch.bernoulli({call.tensor(0)}).to({_drawn_dtype(call, call.dtype(0))})"


def multinomial(call: Call) -> str:
    dtype = call.torch_dtype(call.integer("dtype", 0) or ir.DataType.INT32)
    count = call.integer("sample_size", 1)
    return f"torch.multinomial({call.tensor(0)}.exp(), {count}, replacement=True).to({dtype})"


def dropout(call: Call) -> Results:
    """Outside of training nothing is dropped, and the mask is all true."""
    training = call.known(2) if call.has(2) else (False,)
    if training is None or any(training):
        rate = call.number_text(1) if call.has(1) else "0.5"
        mode = call.number_text(2)
        return Several(call.helper(runtime.dropout, call.tensor(0), rate, mode), 2)
    if call.is_read(1):
        return call.tensor(0), f"torch.ones_like({call.tensor(0)}, dtype=torch.bool)"
    return call.tensor(0)


LOWERINGS: dict[str, Lowering] = {
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "Range": range_,
    "EyeLike": eye_like,
    "RandomUniform": random_uniform,
    "RandomNormal": random_normal,
    "RandomUniformLike": random_uniform_like,
    "RandomNormalLike": random_normal_like,
    "Bernoulli": bernoulli,
    "Multinomial": multinomial,
    "Dropout": dropout,
}
