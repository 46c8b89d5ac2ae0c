"""LibraryGroup kernels of the libraries under torch: cuDNN and cuBLASLt on CUDA, oneDNN on CPU."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from relayout.backends.torch.program.scalars import literal
from relayout.backends.torch.program.scope import Scope
from relayout.backends.torch.providers.conv_form import ConvForm
from relayout.backends.torch.providers.library_group import LibraryGroup
from relayout.backends.torch.providers.orders import CHANNELS_LAST, FIRST, LAST, Order
from relayout.backends.torch.runtime.pointwise import pointwise, tiled
from relayout.graph.read import constant_of


def bias_of(group: LibraryGroup, scope: Scope) -> str:
    """The expression of the bias; kernels that demand one get zeros where there is none."""
    if group.bias is not None:
        return scope.tensor(group.bias)
    tensor = constant_of(group.weight)
    length = 0 if tensor is None else int(tensor.shape[0])  # type: ignore[arg-type]
    zeros = ir.tensor(np.zeros(length, np.float32))
    return scope.draft.weight(zeros, f"{group.output.name}_bias")


def finish(group: LibraryGroup, text: str, scope: Scope) -> None:
    """Bind the result of a kernel, with the activation that it lacks."""
    activation = group.activation
    if activation.curve is not None:
        text = f"F.{activation.curve}({text})"
    elif activation.is_relu:
        text = f"F.relu_({text})"
    elif not activation.is_none:
        text = f"F.hardtanh_({text}, {literal(activation.low)}, {literal(activation.high)})"
    scope.bind(group.output, text)


@dataclass(frozen=True, slots=True)
class PlainConv(ConvForm):
    """The convolution of torch, and the rest of the group after it."""

    @property
    def kind(self) -> str:
        return "plain"

    def write(self, _nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        bias = "None" if self.group.bias is None else scope.tensor(self.group.bias)
        text = self.convolved(scope, bias)
        finish_sum(self, text, scope)


@dataclass(frozen=True, slots=True)
class CudnnConv(ConvForm):
    """cuDNN's convolution with bias and Relu, or with bias, sum and Relu."""

    depth: int = 0
    """If not 0, the operand gets so many channels, those that are added being zeros."""

    @property
    def kind(self) -> str:
        return f"cudnn_{self.depth}" if self.depth else "cudnn"

    def write(self, _nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        source, weight = self.source(scope), self.weight(scope)
        if self.depth:
            more = self.depth - self.window.source[1]
            source = scope.let("padded", f"F.pad({source}, [0, 0, 0, 0, 0, {more}])")
            padded = f"F.pad({weight}, [0, 0, 0, 0, 0, {more}]).contiguous({CHANNELS_LAST})"
            weight = scope.draft.prepare(f"{self.group.output.name}_padded", padded)
        bias, rest = bias_of(self.group, scope), self.arguments
        other = self.residual(scope)
        if other is None:
            text = f"torch.cudnn_convolution_relu({source}, {weight}, {bias}, {rest})"
        else:
            given = f"{source}, {weight}, {other}, 1.0, {bias}, {rest}"
            text = f"torch.cudnn_convolution_add_relu({given})"
        scope.bind(self.group.output, text)


@dataclass(frozen=True, slots=True)
class GemmConv(ConvForm):
    """A pointwise convolution as a product of cuBLASLt, with its bias and Relu in the epilogue."""

    @property
    def kind(self) -> str:
        return "gemm"

    def write(self, _nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        source = self.source(scope)
        matrix = scope.draft.prepare(
            f"{self.group.output.name}_matrix", f"{scope.tensor(self.group.weight)}.flatten(1).t()"
        )
        helper = scope.draft.helper(pointwise)
        is_relu = self.group.activation.is_relu and self.group.residual is None
        text = f"{helper}({source}, {matrix}, {bias_of(self.group, scope)}, {is_relu})"
        if is_relu:
            scope.bind(self.group.output, text)
            return
        finish_sum(self, text, scope)


def finish_sum(form: ConvForm, text: str, scope: Scope) -> None:
    """What a product gives, with the residual added in place, and the activation."""
    other = form.residual(scope)
    if other is not None:
        total = scope.let("total", text)
        text = f"{total}.add_({other})"
    finish(form.group, text, scope)


@dataclass(frozen=True, slots=True)
class TiledConv(ConvForm):
    """A convolution whose windows do not overlap as one product, such as that of image patches.

    Whatever it reads, it writes channels last.
    """

    @property
    def kind(self) -> str:
        return "tiled"

    def write(self, _nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        is_last = self.reads == LAST
        order = ".permute(0, 2, 3, 1)" if is_last else ""
        matrix = scope.draft.prepare(
            f"{self.group.output.name}_matrix",
            f"{scope.tensor(self.group.weight)}{order}.flatten(1).t()",
        )
        bias, kernel = bias_of(self.group, scope), self.window.kernel
        helper = scope.draft.helper(tiled)
        text = f"{helper}({self.source(scope)}, {matrix}, {bias}, {kernel}, {is_last})"
        finish_sum(self, text, scope)


@dataclass(frozen=True, slots=True)
class OneDnnConv(ConvForm):
    """oneDNN's convolution with the weights in its own order, and what it fuses.

    Whatever it reads, it writes channels last.
    """

    @property
    def kind(self) -> str:
        return "onednn"

    def write(self, _nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        window, group = self.window, self.group
        source = self.source(scope)
        padding, strides = list(window.padding or (0, 0)), list(window.strides)
        order = f"{padding}, {strides}, {list(window.dilations)}, {window.groups}"
        weight = scope.draft.prepare(
            f"{group.output.name}_packed",
            f"torch.ops.mkldnn._reorder_convolution_weight("
            f"{scope.tensor(group.weight)}, {order}, {list(window.source)})",
        )
        bias = "None" if group.bias is None else scope.tensor(group.bias)
        unary, scalars = _attributes(group)
        other = self.residual(scope)
        if other is None:
            text = (
                f"torch.ops.mkldnn._convolution_pointwise({source}, {weight}, {bias}, {order}, "
                f"{unary!r}, {scalars}, '')"
            )
        else:
            last = None if unary == "none" else unary
            text = (
                f"torch.ops.mkldnn._convolution_pointwise.binary({source}, {other}, {weight}, "
                f"{bias}, {order}, 'add', 1.0, {last!r}, {scalars}, '')"
            )
        scope.bind(group.output, text)


def _attributes(group: LibraryGroup) -> tuple[str, list[float]]:
    """What oneDNN calls the activation."""
    activation = group.activation
    if activation.is_none:
        return "none", []
    if activation.is_relu:
        return "relu", []
    return "hardtanh", [activation.low, activation.high]


@dataclass(frozen=True, slots=True)
class Linear:
    """A product with a constant matrix and a bias as one call of the library.

    With `more`, so many columns are added that nobody reads, for kernels that take several at once.
    """

    group: LibraryGroup
    reads: Order = FIRST
    """Its rows are stored as they are."""
    more: int = 0

    @property
    def name(self) -> str:
        return "linear padded" if self.more else "linear"

    def write(self, _nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        group = self.group
        matrix = f"{scope.tensor(group.weight)}.t().contiguous()"
        bias = "None" if group.bias is None else scope.tensor(group.bias)
        if self.more:
            matrix = f"F.pad({matrix}, [0, 0, 0, {self.more}])"
            padded = f"F.pad({bias}, [0, {self.more}])"
            bias = bias if group.bias is None else scope.draft.prepare("padded_bias", padded)
        weight = scope.draft.prepare(f"{group.output.name}_matrix", matrix)
        text = f"F.linear({scope.tensor(group.source)}, {weight}, {bias})"
        text += f"[..., :-{self.more}]" if self.more else ""
        if group.residual is not None:
            total = scope.let("total", text)
            text = f"{total}.add_({scope.tensor(group.residual)})"
        finish(group, text, scope)
