"""Model files that are damaged at random: in their bytes, and field by field."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeAlias

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import EncodeError, Message
from onnx import helper

from relayout.cli.demo_model import network
from tests.graph import makers
from tests.suites.feature_graphs import feature_graph
from tests.suites.random_graphs import random_graph

GIVEN_GRAPHS = 24
"""How many random graphs of each kind serve as models to damage."""

DAMAGED_PLACES = (1, 1, 1, 2, 3)
"""In how many places files are damaged: a file with many is refused for the first of them."""

Damage: TypeAlias = Callable[[random.Random, bytes], bytes]
"""From the bytes of a file to those of a damaged one."""

Place: TypeAlias = tuple[Message, FieldDescriptor]
"""A field of one message."""

INTEGERS = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 7, 999, 2**31 - 1, 2**36, 2**62, 2**63 - 1)
FLOATS = (float("nan"), float("inf"), float("-inf"), -0.0, 1e-45, 3.4e38)
TEXTS = ("", "nothing", "\0", "a" * 5000, "../x", "%s{0}[bold]", "\N{SNOWMAN}", "ai.onnx", "-1")
BYTES = (b"", b"\xff\xfe", b"\0" * 3, b"x" * 4096)
OPERATORS = ("Transpose", "Reshape", "If", "Loop", "Scan", "MatMul", "Conv", "Expand", "Squeeze")


def damaged_file(seed: int) -> bytes:
    """A file that was a model before it was damaged; the same one for the same seed."""
    rng = random.Random(seed)
    data = rng.choice(given_files())
    for _ in range(rng.choice(DAMAGED_PLACES)):
        data = rng.choice(DAMAGES)(rng, data)
    return data


@cache
def given_files() -> tuple[bytes, ...]:
    """Small models with products, bodies, functions, quantisers, sequences and all fields."""
    return tuple(model.SerializeToString() for model in _given_models())


def _given_models() -> Iterator[onnx.ModelProto]:
    yield network()
    yield makers.complete()
    yield makers.nested_ifs(3)
    yield makers.doubling_functions(4)
    for seed in range(GIVEN_GRAPHS):
        yield random_graph(seed).model
        yield feature_graph(seed).model


# bytes


def _flip_bits(rng: random.Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 4, 32))):
        if found:
            found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


def _cut_short(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randint(0, len(data))]


def _leave_out(rng: random.Random, data: bytes) -> bytes:
    start = rng.randint(0, len(data))
    return data[:start] + data[start + rng.randint(1, 40) :]


def _repeat(rng: random.Random, data: bytes) -> bytes:
    start = rng.randint(0, len(data))
    return data[:start] + data[start : start + rng.randint(1, 200)] * 2 + data[start:]


def _overwrite(rng: random.Random, data: bytes) -> bytes:
    start = rng.randint(0, len(data))
    noise = rng.choice((rng.randbytes(8), b"\xff" * 8, b"\0" * 8, b"\x80" * 10))
    return data[:start] + noise + data[start + len(noise) :]


def _join(rng: random.Random, data: bytes) -> bytes:
    """Two messages after one another are one message: their fields are merged."""
    return data + rng.choice(given_files())


# fields


def _damage_field(rng: random.Random, data: bytes) -> bytes:
    """Change one field, of any message in the file, in a way that its type allows."""
    return _edited(data, lambda model: _change(rng, model, *rng.choice(_places(model))))


def _damage_node(rng: random.Random, data: bytes) -> bytes:
    """Change a node: operands, results, operator, attributes, their types and their values."""

    def edit(model: onnx.ModelProto) -> None:
        nodes = [message for message, _ in _places(model) if isinstance(message, onnx.NodeProto)]
        if nodes:
            _change(rng, model, *rng.choice(_places(rng.choice(nodes))))

    return _edited(data, edit)


def _damage_graph(rng: random.Random, data: bytes) -> bytes:
    """Rules of whole graphs are broken: circles, names that occur twice, unsorted nodes."""
    return _edited(data, lambda model: rng.choice(_GRAPH_DAMAGES)(rng, model.graph))


def _edited(data: bytes, edit: Callable[[onnx.ModelProto], None]) -> bytes:
    """What becomes of a file that can be read; bytes that are not a model stay as they are."""
    try:
        model = onnx.ModelProto.FromString(data)
        edit(model)
        return bytes(model.SerializeToString())
    except (ValueError, EncodeError, RecursionError):
        return data
    except Exception as error:
        if type(error).__name__ != "DecodeError":
            raise
        return data


def _places(message: Message) -> list[Place]:
    """Every field that is set in a message, and in those inside it."""
    found: list[Place] = []
    waiting = [message]
    while waiting:
        current = waiting.pop()
        for descriptor, value in current.ListFields():
            found.append((current, descriptor))
            if descriptor.message_type is not None:
                waiting += value if _is_repeated(descriptor) else [value]
    return found


def _is_repeated(descriptor: FieldDescriptor) -> bool:
    return bool(descriptor.is_repeated)


def _change(
    rng: random.Random, model: onnx.ModelProto, message: Message, descriptor: FieldDescriptor
) -> None:
    name = descriptor.name
    if rng.random() < 0.15:
        message.ClearField(name)
    elif _is_repeated(descriptor):
        _change_list(rng, model, getattr(message, name), descriptor)
    elif descriptor.message_type is None:
        setattr(message, name, _scalar(rng, model, descriptor))


def _change_list(
    rng: random.Random, model: onnx.ModelProto, items: Any, descriptor: FieldDescriptor
) -> None:
    """Drop, repeat, swap or overwrite items."""
    place, way = rng.randrange(len(items)), rng.randrange(4)
    if way == 0:
        del items[place]
    elif way == 1:
        items.append(items[place])
    elif descriptor.message_type is not None:
        items[place].CopyFrom(rng.choice(items))
    elif way == 2:
        items.append(_scalar(rng, model, descriptor))
    else:
        items[place] = _scalar(rng, model, descriptor)


def _scalar(rng: random.Random, model: onnx.ModelProto, descriptor: FieldDescriptor) -> Any:
    kind = descriptor.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        if descriptor.type == FieldDescriptor.TYPE_BYTES:
            return rng.choice(BYTES)
        return rng.choice((*TEXTS, *OPERATORS, *_names(model)))
    if kind in {FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE}:
        return rng.choice(FLOATS)
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return rng.randrange(18)
    return _fitting(rng.choice(INTEGERS), descriptor)


def _fitting(number: int, descriptor: FieldDescriptor) -> int:
    """A number as near as the type of a field can hold."""
    kind = descriptor.cpp_type
    bits = 32 if kind in _NARROW else 64
    unsigned = kind in {FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64}
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return int(min(max(number, low), high))


_NARROW = {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_UINT32}


def _names(model: onnx.ModelProto) -> list[str]:
    """Names of the model's own values, so that what dangles or circles is tried too."""
    return [name for node in model.graph.node for name in (*node.input, *node.output)][:200]


# graphs


def _close_a_circle(rng: random.Random, graph: onnx.GraphProto) -> None:
    early, late = _two_nodes(rng, graph)
    if early.input and late.output:
        early.input[rng.randrange(len(early.input))] = late.output[0]


def _write_twice(rng: random.Random, graph: onnx.GraphProto) -> None:
    one, other = _two_nodes(rng, graph)
    if one.output and other.output:
        other.output[0] = one.output[0]


def _shuffle(rng: random.Random, graph: onnx.GraphProto) -> None:
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    rng.shuffle(nodes)
    del graph.node[:]
    graph.node.extend(nodes)


def _bend_a_perm(rng: random.Random, graph: onnx.GraphProto) -> None:
    node = _any_node(rng, graph)
    node.op_type = "Transpose"
    del node.attribute[:]
    perms: Sequence[Any] = ([0, 0], [5, 1], [-1, 0], [], [2**62], list(range(40)), [1.5, 0.5], 3)
    perm = rng.choice(perms)
    kind = None if perm else onnx.AttributeProto.INTS
    node.attribute.append(helper.make_attribute("perm", perm, attr_type=kind))


def _change_an_attribute(rng: random.Random, graph: onnx.GraphProto) -> None:
    node = _any_node(rng, graph)
    if not node.attribute:
        return
    attribute = rng.choice(node.attribute)
    values: Sequence[Any] = (1, -1, 2.5, "text", b"\xff", [1, 2], [0.5], ["a"], [-9, 2**40])
    name = attribute.name
    attribute.CopyFrom(helper.make_attribute(name, rng.choice(values)))


def _stretch_a_tensor(rng: random.Random, graph: onnx.GraphProto) -> None:
    if graph.initializer:
        tensor = rng.choice(graph.initializer)
        del tensor.dims[:]
        dims = ([-1], [0], [2**40], [2**32, 2**32], [1] * 70, [3, 0, 2**50])
        tensor.dims.extend(rng.choice(dims))


def _restate_a_type(rng: random.Random, graph: onnx.GraphProto) -> None:
    values = [*graph.input, *graph.output, *graph.value_info]
    if values:
        shape = rng.choice(([-1, -5], [2**62, 2**62], ["N", "N"], [], [0], ["", "x"], [1] * 80))
        kind = rng.choice((0, 1, 8, 9, 16, 22, 999))
        value = rng.choice(values)
        value.type.CopyFrom(helper.make_tensor_type_proto(kind, shape))


def _two_nodes(rng: random.Random, graph: onnx.GraphProto) -> tuple[onnx.NodeProto, onnx.NodeProto]:
    return _any_node(rng, graph), _any_node(rng, graph)


def _any_node(rng: random.Random, graph: onnx.GraphProto) -> onnx.NodeProto:
    node: onnx.NodeProto = rng.choice(graph.node) if graph.node else graph.node.add(op_type="Relu")
    return node


_GRAPH_DAMAGES = (
    *(_close_a_circle, _write_twice, _shuffle, _bend_a_perm, _change_an_attribute),
    *(_stretch_a_tensor, _restate_a_type),
)

DAMAGES: Sequence[Damage] = (
    *(_flip_bits, _flip_bits, _cut_short, _leave_out, _repeat, _overwrite, _join),
    *(_damage_field,) * 8,
    *(_damage_node,) * 8,
    *(_damage_graph,) * 6,
)
