"""Tensors of batch, spatial axes and channels, as builtins with two spatial axes take them."""

from __future__ import annotations

from collections.abc import Callable

from relayout.backends.litert.call import LiteCall, LiteLowering
from relayout.backends.litert.flat_graph import FlatShape, FlatTensor


def channels_first(lower: Callable[[LiteCall, FlatTensor], FlatTensor]) -> LiteLowering:
    """A lowering for channels last, for an operator that has them first."""

    def around(call: LiteCall) -> FlatTensor:
        tensor = call.tensor(0)
        rank = tensor.rank
        last = call.build.transpose(tensor, (0, *range(2, rank), 1))
        return call.build.transpose(lower(call, last), (0, rank - 1, *range(1, rank - 1)))

    return around


def channels_last(lower: Callable[[LiteCall, FlatTensor], FlatTensor]) -> LiteLowering:
    return lambda call: lower(call, call.tensor(0))


def as_picture(call: LiteCall, tensor: FlatTensor) -> FlatTensor:
    """A tensor with one spatial axis as one with two, the first of length 1."""
    if tensor.rank != 3:
        return tensor
    return call.build.reshape(tensor, (tensor.shape[0], 1, *tensor.shape[1:]))


def as_given(call: LiteCall, tensor: FlatTensor, rank: int) -> FlatTensor:
    """The way back from `as_picture`."""
    if rank != 3:
        return tensor
    return call.build.reshape(tensor, (tensor.shape[0], *tensor.shape[2:]))


def two(lengths: FlatShape, fill: int = 1) -> FlatShape:
    """Parameters of one spatial axis for two."""
    return (fill, *lengths) if len(lengths) == 1 else lengths
