"""Files with a length that callers may change, such as the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

from relayout.backends.litert.compiling import compile_model, write_module
from relayout.backends.litert.flat_graph import FlatGraph, FlatOperator, FlatTensor
from relayout.backends.litert.interpreting import LiteModel
from relayout.backends.litert.open_length import with_open_length
from relayout.backends.options import CompileOptions
from relayout.errors import RelayoutError
from relayout.verify.verdict import NumericOptions
from tests.backends.litert.building import builtins_of, drawn, expected
from tests.backends.litert.test_families import Net
from tests.backends.litert.test_quantised import network as quantised_network
from tests.backends.litert.test_road import network


def opened(model: onnx.ModelProto, symbol: str = "N") -> onnx.ModelProto:
    """The model with the first axis of all inputs and outputs open."""
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = symbol
    del model.graph.value_info[:]
    return model


def shuffling() -> onnx.ModelProto:
    """Channels in groups, parts of them, every second one, and a classifier."""
    net = Net({"picture": (1, 4, 6, 6)})
    x = net("Reshape", net.conv("picture", 4, 8), np.asarray([0, 2, 4, 6, 6]))
    x = net("Reshape", net("Transpose", x, perm=[0, 2, 1, 3, 4]), np.asarray([0, 8, 6, 6]))
    part = net("Slice", x, *(np.asarray([n]) for n in (1, 7, 1)))
    odd = net("Slice", part, *(np.asarray([n]) for n in (0, 6, 1, 2)))
    flat = net("Flatten", net("Concat", odd, net.conv(part, 6, 3), axis=1))
    return net.model(net.linear(flat, 6 * 36, 5))


def with_token() -> onnx.ModelProto:
    """A token in front of those of each picture, as in a vision transformer."""
    net = Net({"tokens": (1, 5, 8)})
    batch = net("Gather", net("Shape", "tokens"), np.asarray([0]), axis=0)
    shape = net("Concat", batch, np.asarray([1, 8]), axis=0)
    every = net("Concat", net("Expand", drawn(1, 1, 8), shape), "tokens", axis=1)
    return net.model(net.linear(net.normalised(every, 8), 8, 4))


def with_factors() -> onnx.ModelProto:
    """A factor for each entry of the batch, as in layer normalisations of Keras."""
    net = Net({"x": (1, 6)})
    batch = net("Gather", net("Shape", "x"), np.asarray([0]), axis=0)
    across = net("Mul", net("Transpose", "x", perm=[1, 0]), net("Expand", drawn(1), batch))
    return net.model(net("Tanh", net("Transpose", across, perm=[1, 0])))


def recurrent(op_type: str, gates: int) -> onnx.ModelProto:
    """A layer that begins at zeros: steps come first in the operator, the batch in the input."""
    net = Net({"x": (1, 3, 4)})
    steps = net("Transpose", "x", perm=[1, 0, 2])
    weights = [drawn(1, gates * 5, 4), drawn(1, gates * 5, 5), drawn(1, 2 * gates * 5)]
    _, last = net(op_type, steps, *weights, outputs=2, hidden_size=5)
    return net.model(net("Squeeze", last, np.asarray([0])))


def lstm() -> onnx.ModelProto:
    return recurrent("LSTM", 4)


def gru() -> onnx.ModelProto:
    return recurrent("GRU", 3)


@pytest.mark.parametrize("make", [network, shuffling, with_token, with_factors, lstm, gru])
def test_a_batch_that_is_not_given_stays_open(make: Callable[[], onnx.ModelProto]) -> None:
    model = opened(make())
    compiled = compile_model(model, CompileOptions(inputs=NumericOptions()))
    ((name, lengths),) = (
        (value.name, [dim.dim_value for dim in value.type.tensor_type.shape.dim])
        for value in make().graph.input
    )
    assert f"{name} [-1, " in repr(compiled)
    for batch in (1, 4, 2):
        feeds = {name: drawn(batch, *lengths[1:])}
        (result,) = compiled(feeds).values()
        assert result.shape[0] == batch
        np.testing.assert_allclose(result, expected(model, feeds)[0], rtol=1e-4, atol=1e-4)


def test_parts_of_axes_are_taken_by_what_xnnpack_has() -> None:
    compiled = compile_model(opened(shuffling()), CompileOptions())
    assert "SLICE" not in builtins_of(compiled)
    assert compiled.partitions == compile_model(shuffling(), CompileOptions()).partitions


def test_a_quantised_model_may_have_an_open_batch(tmp_path: Path) -> None:
    given, output = tmp_path / "in.onnx", tmp_path / "out.tflite"
    onnx.save(opened(quantised_network(np.uint8)), given)
    done = write_module(str(given), str(output), CompileOptions(inputs=NumericOptions()))
    assert done.verdict is not None
    assert done.accepted
    assert len(done.verdict.bindings) > 1
    model = LiteModel(output)
    assert [model(drawn(n, 8, 6, 7))["s_d"].shape[0] for n in (1, 3)] == [1, 3]


def test_lengths_that_are_not_open_are_not_changed() -> None:
    compiled = compile_model(opened(network()), CompileOptions())
    with pytest.raises((RuntimeError, ValueError)):
        compiled(drawn(1, 3, 8, 9))


def test_a_builtin_that_has_to_know_the_length_is_named() -> None:
    """What is repeated as often as the batch is long, and longer than all it is joined with."""
    net = Net({"x": (1, 3)})
    batch = net("Gather", net("Shape", "x"), np.asarray([0]), axis=0)
    whole = net(
        "Expand", net("Exp", drawn(1, 300)), net("Concat", batch, np.asarray([300]), axis=0)
    )
    model = opened(net.model(net("Concat", "x", whole, axis=1)))
    with pytest.raises(RelayoutError, match="length 'N' cannot stay open, since CONCATENATION at"):
        compile_model(model, CompileOptions())
    assert compile_model(model, CompileOptions(dims={"N": 2}))(drawn(2, 3))


@pytest.mark.parametrize("axes", [(0, 2), (2,)])
def test_other_open_lengths_must_be_given(axes: tuple[int, ...]) -> None:
    model = network()
    for axis in axes:
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = f"length{axis}"
    with pytest.raises(RelayoutError, match="give them by --shape or --dim"):
        compile_model(model, CompileOptions())


def tensors(*shapes: Sequence[int]) -> list[FlatTensor]:
    floats = np.dtype(np.float32)
    return [FlatTensor(f"t{place}", tuple(shape), floats) for place, shape in enumerate(shapes)]


def reading(first: int, last: int) -> FlatGraph:
    """A sum of two of three tensors."""
    every = tensors((2, 3), (2, 3), (2, 3), (2, 3))
    operators = [FlatOperator("ADD", (every[first], every[last]), (every[3],))]
    return FlatGraph(tuple(every[:3]), (every[3],), operators)


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        (reading(0, 1), reading(0, 2), "the shape of 't1'"),
        (reading(0, 1), FlatGraph(), "the builtins"),
    ],
)
def test_graphs_that_differ_by_more_than_lengths_have_nothing_in_common(
    one: FlatGraph, other: FlatGraph, reason: str
) -> None:
    with pytest.raises(RelayoutError, match=reason):
        with_open_length(one, other, "N")


def test_lengths_that_shrink_to_nothing_are_not_left_open() -> None:
    (x, y), (longer, more) = tensors((2, 3), (1, 3)), tensors((3, 3), (2, 3))
    one = FlatGraph((x,), (y,), [FlatOperator("ABS", (x,), (y,))])
    other = FlatGraph((longer,), (more,), [FlatOperator("ABS", (longer,), (more,))])
    with pytest.raises(RelayoutError, match="the shape of 't1'"):
        with_open_length(one, other, "N")
