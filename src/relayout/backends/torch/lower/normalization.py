"""Normalisations."""

from __future__ import annotations

from relayout.backends.torch.lower.axes import normal
from relayout.backends.torch.program.call import Call, Lowering, Results, Several
from relayout.backends.torch.program.scalars import literal
from relayout.backends.torch.runtime import normalization as runtime


def batch_norm(call: Call) -> Results:
    x, scale, bias, mean, var = (call.tensor(index) for index in range(5))
    epsilon, momentum = call.real("epsilon", 1e-5), call.real("momentum", 0.9)
    if call.integer("training_mode", 0):
        given = (x, scale, bias, mean, var, epsilon, momentum)
        return Several(call.helper(runtime.batch_norm_training, *given), 3)
    if call.shape(1) == (0,):
        return x  # Torch ends where there are no channels.
    return f"F.batch_norm({x}, {mean}, {var}, {scale}, {bias}, eps={literal(epsilon)})"


def instance_norm(call: Call) -> str:
    epsilon = literal(call.real("epsilon", 1e-5))
    return call.helper(runtime.instance_norm, *call.tensors, epsilon)


def layer_norm(call: Call) -> Results:
    x, epsilon, axis = call.tensor(0), literal(call.real("epsilon", 1e-5)), call.integer("axis", -1)
    bias = call.optional(2)
    if call.is_read(1) or call.is_read(2):
        given = (x, call.tensor(1), bias, axis, epsilon)
        return Several(call.helper(runtime.layer_norm_statistics, *given), 3)
    lengths = _normalised(call, axis)
    if lengths is None:
        return call.helper(runtime.layer_norm, x, call.tensor(1), bias, axis, epsilon)
    return f"F.layer_norm({x}, {lengths}, {call.tensor(1)}, {bias}, eps={epsilon})"


def rms_norm(call: Call) -> str:
    x, epsilon, axis = call.tensor(0), literal(call.real("epsilon", 1e-5)), call.integer("axis", -1)
    lengths = _normalised(call, axis)
    if lengths is None:
        return call.helper(runtime.rms_norm, x, call.tensor(1), axis, epsilon)
    return f"F.rms_norm({x}, {lengths}, {call.tensor(1)}, eps={epsilon})"


def _normalised(call: Call, axis: int) -> tuple[int, ...] | None:
    """The lengths of the axes that are normalised, if the scale has just those."""
    shape, scale = call.shape(0), call.shape(1)
    if shape is None or scale is None:
        return None
    lengths = shape[normal(axis, len(shape)) :]
    known = tuple(length for length in lengths if isinstance(length, int))
    return known if known == lengths == scale else None


def group_norm(call: Call) -> str:
    x, scale, bias = call.tensors
    groups, epsilon = call.integer("num_groups", 1), literal(call.real("epsilon", 1e-5))
    if call.version < 21:
        scale, bias = (
            f"{text}.repeat_interleave({x}.shape[1] // {groups})" for text in (scale, bias)
        )
    return f"F.group_norm({x}, {groups}, {scale}, {bias}, eps={epsilon})"


def local_response(call: Call) -> str:
    size = call.integer("size", 1)
    numbers = [
        literal(call.real(name, default))
        for name, default in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    ]
    if size % 2:
        alpha, beta, bias = numbers
        return f"F.local_response_norm({call.tensor(0)}, {size}, {alpha}, {beta}, {bias})"
    return call.helper(runtime.local_response, call.tensor(0), size, *numbers)


def lp_normalization(call: Call) -> str:
    axis, p = call.integer("axis", -1), call.integer("p", 2)
    return call.helper(runtime.lp_normalization, call.tensor(0), axis, p)


def mean_variance(call: Call) -> str:
    """The default names the axes of an image; of fewer axes runtimes take those that there are."""
    rank = call.rank(0)
    axes = call.ints("axes") or tuple(axis for axis in (0, 2, 3) if rank is None or axis < rank)
    return call.helper(runtime.mean_variance, call.tensor(0), axes)


def soft(function: str) -> Lowering:
    """Up to opset 12 everything from the axis on is one axis."""

    def lower(call: Call) -> str:
        rank = call.rank(0)
        axis = call.integer("axis", -1 if call.version >= 13 else 1)
        if call.version >= 13 or (rank is not None and normal(axis, rank) == rank - 1):
            return f"{function}({call.tensor(0)}, {axis})"
        return call.helper(runtime.over_the_rest, function, call.tensor(0), axis)

    return lower


def hardmax(call: Call) -> Results:
    return soft(call.scope.draft.helper(runtime.hardmax))(call)


LOWERINGS: dict[str, Lowering] = {
    "BatchNormalization": batch_norm,
    "InstanceNormalization": instance_norm,
    "LayerNormalization": layer_norm,
    "RMSNormalization": rms_norm,
    "GroupNormalization": group_norm,
    "LRN": local_response,
    "LpNormalization": lp_normalization,
    "MeanVarianceNormalization": mean_variance,
    "Softmax": soft("torch.softmax"),
    "LogSoftmax": soft("torch.log_softmax"),
    "Hardmax": hardmax,
}
