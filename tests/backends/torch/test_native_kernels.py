"""Each C++ kernel beside torch in float64, over shapes that fill tiles and such that do not."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from relayout.backends.torch.providers.library_group import Activation, Curve  # noqa: E402
from relayout.backends.torch.providers.native_interface import KernelKind  # noqa: E402
from relayout.backends.torch.providers.native_steps import (  # noqa: E402
    TILES,
    Buffer,
    Image,
    NativeStep,
    form_of,
)
from tests.backends.torch.building import can_build  # noqa: E402
from tests.backends.torch.native_programs import assert_near, performed, stored  # noqa: E402

pytestmark = pytest.mark.skipif(not can_build(), reason="there is no compiler")
functional = torch.nn.functional


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


PRODUCTS = [
    ((1, 5, 7, 3), 5, Activation()),
    ((1, 6, 6, 16), 24, Activation(low=0.0, high=6.0)),
    ((2, 9, 5, 33), 40, Activation(low=0.0)),
    ((1, 1, 1, 700), 100, Activation()),
    ((1, 7, 7, 336), 32, Activation(curve=Curve.GELU)),
    ((1, 21, 20, 64), 72, Activation(low=0.0)),
    ((3, 14, 14, 24), 8, Activation()),
    ((1, 3, 5, 344), 408, Activation(low=0.0)),
    ((1, 5, 5, 680), 1000, Activation(curve=Curve.GELU)),
]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("with_sum", [False, True])
@pytest.mark.parametrize(("image", "width", "activation"), PRODUCTS)
def test_product(
    image: Image, width: int, activation: Activation, with_sum: bool, threads: int
) -> None:
    source, result = Buffer(image, 0), Buffer((*image[:3], width))
    other = Buffer(result.image, 1) if with_sum else None
    x, residual = stored(image), stored(result.image)
    weight, bias = torch.randn(image[3], width), torch.randn(width)
    step = NativeStep(
        KernelKind.CONVOLUTION, source, result, ("matrix", "w"), "b", other, activation=activation
    )
    wanted = x.double().permute(0, 2, 3, 1) @ weight.double() + bias.double()
    wanted = wanted.permute(0, 3, 1, 2) + (residual.double() if with_sum else 0.0)
    operands = [x, residual] if with_sum else [x]
    given = performed([step], {"w": weight, "b": bias}, operands, threads)
    assert_near(given, activated(wanted, activation))


def activated(x: Any, activation: Activation) -> Any:
    if activation.curve is Curve.GELU:
        return functional.gelu(x)
    return x.clamp(activation.low, activation.high)


@pytest.mark.parametrize("curve", list(Curve))
def test_curves_near_and_far_from_zero(curve: Curve) -> None:
    far = [-torch.inf, -1e30, -100.0, -1e-30, -0.0, 0.0, 1e-30, 100.0, 1e30, torch.inf, torch.nan]
    x = torch.cat([torch.linspace(-20.0, 20.0, 4077), torch.tensor(far)])
    image = (1, 1, 1, len(x))
    step = NativeStep(
        KernelKind.SUM, Buffer(image, 0), Buffer(image), activation=Activation(curve=curve)
    )
    given = performed([step], {}, [x.reshape(1, -1, 1, 1)], 1).flatten().double()
    wanted = getattr(functional, curve)(x.double())
    wanted[x == -torch.inf] = 0.0  # its limit; torch multiplies infinity by 0
    given[x == -torch.inf] = given[x == -torch.inf].nan_to_num(0.0)
    torch.testing.assert_close(given, wanted, rtol=1e-6, atol=2e-6, equal_nan=True)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kernel", [2, 3, 5, 7])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("image", [(1, 9, 8, 8), (2, 13, 21, 40), (1, 7, 7, 16), (1, 14, 28, 8)])
def test_depthwise_convolution(image: Image, kernel: int, stride: int, threads: int) -> None:
    pad = kernel // 2
    x, weight, bias = stored(image), torch.randn(image[3], 1, kernel, kernel), torch.randn(image[3])
    wanted = functional.conv2d(
        x.double(), weight.double(), bias.double(), stride, pad, groups=image[3]
    )
    n, depth, height, width = wanted.shape
    step = NativeStep(
        KernelKind.DEPTHWISE,
        Buffer(image, 0),
        Buffer((n, height, width, depth)),
        ("depthwise", "w"),
        "b",
        kernel=(kernel, kernel),
        strides=(stride, stride),
        pads=(pad, pad),
        activation=Activation(low=0.0),
    )
    given = performed([step], {"w": weight, "b": bias}, [x], threads)
    assert_near(given, wanted.clamp(min=0.0))


@pytest.mark.parametrize("kind", TILES)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("with_sum", [False, True])
@pytest.mark.parametrize(
    ("image", "width"),
    [
        ((1, 1, 1, 8), 8),
        ((1, 4, 4, 8), 8),
        ((1, 7, 7, 40), 24),
        ((3, 7, 5, 24), 40),
        ((2, 9, 14, 16), 32),
        ((1, 30, 33, 24), 16),
        ((5, 14, 10, 16), 16),
    ],
)
def test_winograd(image: Image, width: int, with_sum: bool, threads: int, kind: KernelKind) -> None:
    activation = Activation(low=0.0) if with_sum else Activation(low=-20.0, high=20.0)
    result = Buffer((*image[:3], width))
    x, residual = stored(image), stored(result.image)
    weight, bias = torch.randn(width, image[3], 3, 3), torch.randn(width)
    step = NativeStep(
        kind,
        Buffer(image, 0),
        result,
        (form_of(kind, "filters"), "w"),
        "b",
        Buffer(result.image, 1) if with_sum else None,
        kernel=(3, 3),
        pads=(1, 1),
        activation=activation,
    )
    wanted = functional.conv2d(x.double(), weight.double(), bias.double(), 1, 1)
    wanted = wanted + (residual.double() if with_sum else 0.0)
    operands = [x, residual] if with_sum else [x]
    given = performed([step], {"w": weight, "b": bias}, operands, threads)
    assert_near(given, activated(wanted, activation))


@pytest.mark.parametrize("kind", TILES)
@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (2, 0, 1, 1), (0, 1, 2, 0)])
def test_winograd_with_borders_of_many_kinds(pads: tuple[int, ...], kind: KernelKind) -> None:
    image, (top, left, bottom, right) = (2, 8, 9, 16), pads
    x, weight, bias = stored(image), torch.randn(24, 16, 3, 3), torch.randn(24)
    bordered = functional.pad(x.double(), (left, right, top, bottom))
    wanted = functional.conv2d(bordered, weight.double(), bias.double())
    result = Buffer((2, *wanted.shape[2:], 24))
    packed = (form_of(kind, "filters"), "w")
    sizes = ((3, 3), (1, 1), (top, left))
    step = NativeStep(kind, Buffer(image, 0), result, packed, "b", None, *sizes)
    assert_near(performed([step], {"w": weight, "b": bias}, [x], 2), wanted)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("with_sum", [False, True])
@pytest.mark.parametrize(
    ("image", "width", "activation"),
    [
        ((1, 2, 3, 16), 32, Activation()),
        ((1, 14, 14, 48), 96, Activation(low=0.0)),
        ((2, 5, 7, 656), 64, Activation(curve=Curve.GELU)),
        ((1, 14, 13, 656), 64, Activation(curve=Curve.GELU)),
        ((1, 7, 7, 1296), 32, Activation(low=0.0)),
        ((1, 1, 1, 16), 32, Activation()),
        ((1, 7, 7, 32), 64, Activation(low=0.0)),
        ((1, 23, 27, 16), 32, Activation(curve=Curve.GELU)),
        ((3, 21, 20, 48), 64, Activation(low=0.0)),
    ],
)
def test_product_by_quarters(
    image: Image, width: int, activation: Activation, with_sum: bool, threads: int
) -> None:
    result = Buffer((*image[:3], width))
    other = Buffer(result.image, 1) if with_sum else None
    x, residual = stored(image), stored(result.image)
    weight, bias = torch.randn(width, image[3], 1, 1), torch.randn(width)
    step = NativeStep(
        KernelKind.STRASSEN,
        Buffer(image, 0),
        result,
        ("strassen filters", "w"),
        "b",
        other,
        activation=activation,
    )
    wanted = functional.conv2d(x.double(), weight.double(), bias.double())
    wanted = wanted + (residual.double() if with_sum else 0.0)
    operands = [x, residual] if with_sum else [x]
    given = performed([step], {"w": weight, "b": bias}, operands, threads)
    assert_near(given, activated(wanted, activation))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("image", "kernel"),
    [
        ((2, 13, 15, 32), (1, 1)),
        ((1, 56, 54, 16), (1, 1)),
        ((1, 7, 7, 48), (1, 1)),
        ((2, 13, 15, 32), (3, 2)),
        ((1, 33, 31, 16), (2, 2)),
        ((1, 9, 8, 656), (2, 3)),
    ],
)
def test_convolution_of_every_second_pixel_by_quarters(
    image: Image, kernel: tuple[int, int], threads: int
) -> None:
    x, weight, bias = stored(image), torch.randn(64, image[3], *kernel), torch.randn(64)
    wanted = functional.conv2d(x.double(), weight.double(), bias.double(), 2)
    result = Buffer((image[0], *wanted.shape[2:], 64))
    residual = Buffer(result.image, 1)
    other = stored(result.image)
    packed = ("strassen filters", "w")
    source, strides = Buffer(image, 0), (2, 2)
    step = NativeStep(KernelKind.STRASSEN, source, result, packed, "b", residual, kernel, strides)
    given = performed([step], {"w": weight, "b": bias}, [x, other], threads)
    assert_near(given, wanted + other)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("image", [(1, 1, 1, 8), (2, 3, 3, 96), (1, 7, 5, 40)])
def test_normalisation_of_pixels(image: Image, threads: int) -> None:
    x, scale, bias = stored(image), torch.randn(image[3]), torch.randn(image[3])
    step = NativeStep(
        KernelKind.LAYER_NORM, Buffer(image, 0), Buffer(image), ("vector", "s"), "b", epsilon=1e-3
    )
    pixels = x.double().permute(0, 2, 3, 1)
    wanted = functional.layer_norm(pixels, (image[3],), scale.double(), bias.double(), 1e-3)
    given = performed([step], {"s": scale, "b": bias}, [x], threads)
    assert_near(given, wanted.permute(0, 3, 1, 2))


@pytest.mark.parametrize("low", [-40.0, -6.0, -1.0])
def test_gelu(low: float) -> None:
    """Far from 0 it is exactly its operand, or 0."""
    image = (1, 1, 125, 8)
    x = torch.linspace(low, -low, 1000).reshape(1, 1, 125, 8).permute(0, 3, 1, 2)
    step = NativeStep(
        KernelKind.SUM, Buffer(image, 0), Buffer(image), activation=Activation(curve=Curve.GELU)
    )
    given = performed([step], {}, [x], 1).double()
    wanted = functional.gelu(x.double())
    assert (given - wanted).abs().max() <= 2e-6
    far = x.double().abs() > 5.5
    assert torch.equal(given[far], x.double().clamp(min=0.0)[far])
