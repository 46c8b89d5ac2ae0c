"""Measures kernels of models, or of common convolutions, and keeps what was measured."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from relayout.backends.torch.choose.choices import Choice, PricedCandidate
from relayout.backends.torch.choose.device_name import device_name
from relayout.backends.torch.choose.notices import KernelWarning
from relayout.backends.torch.choose.settings import TuningSettings
from relayout.backends.torch.choose.tuning import tuned
from relayout.backends.torch.compiling import program_of
from relayout.backends.torch.providers.prices import Prices
from relayout.graph.io.sources import ModelSource
from relayout.report.kernels import CalibrationRecord, KernelOption, KernelRecord

COMMON = (
    (3, 64, 224, 7, 2, 1),
    (64, 64, 56, 1, 1, 1),
    (64, 64, 56, 3, 1, 1),
    (64, 256, 56, 1, 1, 1),
    (128, 128, 28, 3, 1, 1),
    (128, 128, 28, 3, 1, 128),
    (256, 256, 14, 3, 1, 1),
    (1024, 256, 14, 1, 1, 1),
    (512, 512, 7, 3, 1, 1),
)
"""Channels read and written, side of the image, kernel, stride and groups."""


def calibrate(
    models: Sequence[ModelSource],
    device: str = "cpu",
    dtype: str | None = None,
    dims: Mapping[str, int] | None = None,
    *,
    again: bool = False,
) -> CalibrationRecord:
    """What is chosen for each group, each once; `again` measures what is known anew."""
    sources = list(models) or [common_convolution(shape) for shape in COMMON]
    settings = TuningSettings(prices=Prices.of(device_name(device), again=again))
    found: dict[str, Choice] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", KernelWarning)
        for source in sources:
            program = program_of(source, device=device, dtype=dtype, dims=dims)
            _, choices = tuned(program, settings)
            found.update((choice.group, choice) for choice in choices)
    return CalibrationRecord(
        device_name(device),
        tuple(kernel_record(choice) for choice in found.values()),
        tuple(dict.fromkeys(str(warning.message) for warning in caught)),
    )


def kernel_record(choice: Choice) -> KernelRecord:
    """A choice as it is reported."""
    about = choice.about
    return KernelRecord(
        about.operator,
        about.source,
        about.result,
        about.kernel,
        about.strides,
        about.groups,
        about.bias,
        about.residual,
        about.activation,
        about.dtype,
        _option(choice.option),
        tuple(map(_option, choice.options)),
    )


def _option(option: PricedCandidate) -> KernelOption:
    price = option.price
    if price is None or not price.can_run:
        reason = "" if price is None else price.reason
        return KernelOption(option.provider, option.words, None, reason)
    is_noisy = price.is_noisy
    return KernelOption(option.provider, option.words, price.seconds, is_noisy=is_noisy)


def common_convolution(shape: tuple[int, int, int, int, int, int]) -> onnx.ModelProto:
    """A convolution with a bias and a Relu."""
    depth, width, side, size, stride, groups = shape
    source = np.random.default_rng(0)
    weight = source.standard_normal((width, depth // groups, size, size), np.float32)
    pads = [size // 2] * 4
    nodes = [
        helper.make_node(
            "Conv", ["x", "w", "b"], ["c"], strides=[stride] * 2, pads=pads, group=groups
        ),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, depth, side, side])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    weights = {"w": weight, "b": np.zeros(width, np.float32)}
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "convolution", [x], [y], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
