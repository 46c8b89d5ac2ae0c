"""Makes steps of C++ kernels of nodes, as far as there are kernels for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx_ir as ir

from relayout.backends.torch.providers.library_group import (
    Activation,
    LibraryGroup,
    activation_of,
)
from relayout.backends.torch.providers.native_interface import LANES, KernelKind
from relayout.backends.torch.providers.native_steps import (
    TILES,
    Buffer,
    Image,
    NativeStep,
    form_of,
    kinds_of,
)
from relayout.backends.torch.providers.window import Sliding, known_shape, pointwise, sliding_of
from relayout.graph.read import constant_of, is_op, perm_of

TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


@dataclass(frozen=True, slots=True)
class BufferedValue:
    """A value of the graph as a buffer: its channels come second, or last as they are stored."""

    buffer: Buffer
    is_image: bool


@dataclass
class Builder:
    """Steps while they are being collected; `add` returns whether there are kernels for a group."""

    fastest: Callable[[Sliding, list[KernelKind]], KernelKind]
    """Which of the kernels for a convolution or a product is to do it."""
    steps: list[NativeStep] = field(default_factory=list)
    stored: dict[ir.Value, BufferedValue] = field(default_factory=dict)
    operands: list[ir.Value] = field(default_factory=list)
    weights: dict[str, ir.TensorProtocol] = field(default_factory=dict)

    def add(self, group: LibraryGroup | ir.Node) -> bool:
        """Add the steps of a group or a node, or leave everything as it was."""
        before = (len(self.steps), dict(self.stored), len(self.operands))
        done = self._fused(group) if isinstance(group, LibraryGroup) else self._node(group)
        if not done:
            del self.steps[before[0] :]
            self.stored = before[1]
            del self.operands[before[2] :]
        return done

    # -- operands and results --------------------------------------------------------------------

    def _read(self, value: ir.Value | None) -> BufferedValue | None:
        """The buffer of a value; one from outside becomes an operand of the program."""
        if value is None or constant_of(value) is not None:
            return None
        if value in self.stored:
            return self.stored[value]
        shape = known_shape(value)
        if shape is None or value.dtype != ir.DataType.FLOAT or len(shape) not in {2, 4}:
            return None
        image = (shape[0], 1, 1, shape[1]) if len(shape) == 2 else _image(shape)
        self.operands.append(value)
        buffer = Buffer(image, len(self.operands) - 1)
        self.stored[value] = BufferedValue(buffer, len(shape) == 4)
        return self.stored[value]

    def _write(self, value: ir.Value, image: Image, is_image: bool) -> Buffer:
        buffer = Buffer(image)
        self.stored[value] = BufferedValue(buffer, is_image)
        return buffer

    def _name(self, value: ir.Value) -> str:
        tensor = constant_of(value)
        name = value.name or ""
        if tensor is not None:
            self.weights[name] = tensor
        return name

    def _bias(self, value: ir.Value | None, depth: int) -> str:
        if value is not None:
            return self._name(value)
        name = f"zeros of {depth}"
        self.weights.setdefault(name, ir.tensor(np.zeros(depth, np.float32)))
        return name

    # -- convolutions and products ---------------------------------------------------------------

    def _fused(self, group: LibraryGroup) -> bool:
        source = self._read(group.source)
        residual = None if group.residual is None else self._read(group.residual)
        if source is None or (group.residual is not None and residual is None):
            return False
        if residual is not None and residual.is_image != group.is_conv:
            return False
        if not group.is_conv:
            return self._linear(group, source, residual)
        window = sliding_of(group.anchor)
        if window is None or not source.is_image or window.dilations != (1, 1):
            return False
        other = None if residual is None else residual.buffer
        if window.groups == 1:
            return self._conv(group, window, source.buffer, other)
        return self._depthwise(group, window, source.buffer) if other is None else False

    def _linear(
        self, group: LibraryGroup, source: BufferedValue, residual: BufferedValue | None
    ) -> bool:
        shape = known_shape(group.weight)
        if shape is None or source.is_image or source.buffer.image[3] != shape[0]:
            return False
        n, height, width, depth = source.buffer.image
        kind = self._kind(pointwise((n, depth, height, width), shape[1]), group)
        result = self._write(group.output, (n, height, width, shape[1]), is_image=False)
        step = NativeStep(
            kind,
            source.buffer,
            result,
            (form_of(kind, "matrix"), self._name(group.weight)),
            self._bias(group.bias, shape[1]),
            None if residual is None else residual.buffer,
            activation=group.activation,
        )
        return self._finished(step)

    def _conv(
        self, group: LibraryGroup, window: Sliding, source: Buffer, residual: Buffer | None
    ) -> bool:
        kind = self._kind(window, group)
        if kind not in TILES and (any(window.pads) or self._is_first(source)):
            source = self._bordered(source, window)
        result = self._write(group.output, _image(window.result), is_image=True)
        step = NativeStep(
            kind,
            source,
            result,
            (form_of(kind, "filters"), self._name(group.weight)),
            self._bias(group.bias, window.result[1]),
            residual,
            window.kernel,
            window.strides,
            (window.pads[0], window.pads[1]) if kind in TILES else (0, 0),
            group.activation,
        )
        return self._finished(step)

    def _finished(self, step: NativeStep) -> bool:
        """A step, with the activation in one after it where its own kernel has no such."""
        if step.has_activation:
            self.steps.append(step)
            return True
        if step.result.size % LANES:
            return False
        before = Buffer(step.result.image)
        self.steps.append(replace(step, result=before, activation=Activation()))
        last = NativeStep(KernelKind.SUM, before, step.result, activation=step.activation)
        self.steps.append(last)
        return True

    def _kind(self, window: Sliding, group: LibraryGroup) -> KernelKind:
        return self.fastest(window, kinds_of(window, group.activation))

    def _is_first(self, source: Buffer) -> bool:
        """Whether a tensor comes from outside with so few channels that it is reordered here."""
        return source.operand is not None and source.image[3] < LANES

    def _bordered(self, source: Buffer, window: Sliding) -> Buffer:
        n, height, width, depth = source.image
        top, left, bottom, right = window.pads
        wide = Buffer((n, height + top + bottom, width + left + right, depth))
        kind = KernelKind.BORDER_FIRST if self._is_first(source) else KernelKind.BORDER
        self.steps.append(NativeStep(kind, source, wide, pads=(top, left)))
        return wide

    def _depthwise(self, group: LibraryGroup, window: Sliding, source: Buffer) -> bool:
        depth = window.source[1]
        is_each_alone = window.groups == depth == window.result[1]
        is_square = window.strides[0] == window.strides[1]
        if not is_each_alone or not is_square or depth % LANES:
            return False
        step = NativeStep(
            KernelKind.DEPTHWISE,
            source,
            self._write(group.output, _image(window.result), is_image=True),
            ("depthwise", self._name(group.weight)),
            self._bias(group.bias, depth),
            None,
            window.kernel,
            window.strides,
            (window.pads[0], window.pads[1]),
            group.activation,
        )
        return self._finished(step)

    # -- single nodes ----------------------------------------------------------------------------

    def _node(self, node: ir.Node) -> bool:
        if any(value.uses() or value.is_graph_output() for value in node.outputs[1:]):
            return False
        if is_op(node, "Add"):
            return self._sum(node)
        source = self._read(node.inputs[0] if node.inputs else None)
        if source is None:
            return False
        if activation_of(node) is not None:
            return self._pointwise(node, source)
        build = _NODES.get(node.op_type)
        return build is not None and is_op(node, node.op_type) and build(self, node, source)

    def _sum(self, node: ir.Node) -> bool:
        first, second = self._read(node.inputs[0]), self._read(node.inputs[1])
        if first is None or second is None or first.is_image != second.is_image:
            return False
        if first.buffer.image != second.buffer.image or first.buffer.size % LANES:
            return False
        result = self._write(node.outputs[0], first.buffer.image, first.is_image)
        self.steps.append(NativeStep(KernelKind.SUM, first.buffer, result, residual=second.buffer))
        return True

    def _pointwise(self, node: ir.Node, source: BufferedValue) -> bool:
        activation = activation_of(node)
        if activation is None or source.buffer.size % LANES:
            return False
        result = self._write(node.outputs[0], source.buffer.image, source.is_image)
        self.steps.append(NativeStep(KernelKind.SUM, source.buffer, result, activation=activation))
        return True

    def max_pool(self, node: ir.Node, source: BufferedValue) -> bool:
        window = sliding_of(node)
        if window is None or not source.is_image or window.dilations != (1, 1):
            return False
        if window.strides[0] != window.strides[1] or window.source[1] % LANES:
            return False
        # A window that lies outside altogether has no largest element.
        if max(window.pads[0], window.pads[1]) >= min(window.kernel) or _overhangs(window):
            return False
        result = self._write(node.outputs[0], _image(window.result), is_image=True)
        pads = (window.pads[0], window.pads[1])
        self.steps.append(
            NativeStep(
                KernelKind.MAX_POOL,
                source.buffer,
                result,
                kernel=window.kernel,
                strides=window.strides,
                pads=pads,
            )
        )
        return True

    def average(self, node: ir.Node, source: BufferedValue) -> bool:
        n, _, _, depth = source.buffer.image
        if not source.is_image or depth % LANES:
            return False
        result = self._write(node.outputs[0], (n, 1, 1, depth), is_image=True)
        self.steps.append(NativeStep(KernelKind.AVERAGE, source.buffer, result))
        return True

    def layer_norm(self, node: ir.Node, source: BufferedValue) -> bool:
        shape = known_shape(node.inputs[0])
        axis = node.attributes.get_int("axis", -1)
        depth = source.buffer.image[3]
        constants = [constant_of(value) for value in node.inputs[1:]]
        if source.is_image or shape is None or axis not in {-1, len(shape) - 1} or depth % LANES:
            return False
        if any(tensor is None or tensor.size != depth for tensor in constants):
            return False
        self.steps.append(
            NativeStep(
                KernelKind.LAYER_NORM,
                source.buffer,
                self._write(node.outputs[0], source.buffer.image, is_image=False),
                ("vector", self._name(node.inputs[1])),  # type: ignore[arg-type]
                self._bias(node.inputs[2] if len(node.inputs) > 2 else None, depth),
                epsilon=node.attributes.get_float("epsilon", 1e-5),
            )
        )
        return True

    def gemm(self, node: ir.Node, source: BufferedValue) -> bool:
        shape, weight = known_shape(node.inputs[0]), node.inputs[1]
        bias = node.inputs[2] if len(node.inputs) > 2 else None
        is_transposed = node.attributes.get_int("transB", 0)
        plain = node.attributes.get_int("transA", 0) == 0
        ones = {node.attributes.get_float(name, 1.0) for name in ("alpha", "beta")} == {1.0}
        if not (plain and ones) or shape is None or len(shape) != 2 or constant_of(weight) is None:
            return False
        matrix = known_shape(weight)
        if matrix is None or weight is None or source.buffer.image[3] != shape[1]:
            return False
        width = matrix[0] if is_transposed else matrix[1]
        tensor = constant_of(bias)
        if bias is not None and (tensor is None or tensor.size != width):
            return False
        self.steps.append(
            NativeStep(
                KernelKind.CONVOLUTION,
                source.buffer,
                self._write(node.outputs[0], (shape[0], 1, 1, width), is_image=False),
                ("transposed" if is_transposed else "matrix", self._name(weight)),
                self._bias(bias, width),
            )
        )
        return True

    def transpose(self, node: ir.Node, source: BufferedValue) -> bool:
        """No step: the tensor is stored as it was."""
        perm = perm_of(node)
        if perm is None or perm.axes != (TO_LAST if source.is_image else TO_FIRST):
            return False
        self.stored[node.outputs[0]] = BufferedValue(source.buffer, not source.is_image)
        return True

    def flatten(self, node: ir.Node, source: BufferedValue) -> bool:
        """No step where pixels are single."""
        n, height, width, depth = source.buffer.image
        if (height, width) != (1, 1) or known_shape(node.outputs[0]) != (n, depth):
            return False
        self.stored[node.outputs[0]] = BufferedValue(source.buffer, is_image=False)
        return True


_NODES: dict[str, Callable[[Builder, ir.Node, BufferedValue], bool]] = {
    "MaxPool": Builder.max_pool,
    "GlobalAveragePool": Builder.average,
    "LayerNormalization": Builder.layer_norm,
    "Gemm": Builder.gemm,
    "Transpose": Builder.transpose,
    "Flatten": Builder.flatten,
    "Reshape": Builder.flatten,
    "Squeeze": Builder.flatten,
}


def _image(shape: Sequence[int]) -> Image:
    n, depth, height, width = shape
    return n, height, width, depth


def _overhangs(window: Sliding) -> bool:
    """Whether the last window begins after the end of the operand."""
    return any(
        (result - 1) * stride - pad >= length
        for result, stride, pad, length in zip(
            window.result[2:], window.strides, window.pads, window.source[2:], strict=False
        )
    )
