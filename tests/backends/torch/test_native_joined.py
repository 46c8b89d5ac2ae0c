"""C++ kernels that are done together, beside torch in float64."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

torch = pytest.importorskip("torch")

from relayout.backends.torch.providers.library_group import Activation  # noqa: E402
from relayout.backends.torch.providers.native_interface import KernelKind  # noqa: E402
from relayout.backends.torch.providers.native_joins import joined  # noqa: E402
from relayout.backends.torch.providers.native_steps import (  # noqa: E402
    Buffer,
    Image,
    NativeStep,
)
from tests.backends.torch.building import can_build  # noqa: E402
from tests.backends.torch.native_programs import assert_near, performed, stored  # noqa: E402

pytestmark = pytest.mark.skipif(not can_build(), reason="there is no compiler")
functional = torch.nn.functional


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", [3, 5])
@pytest.mark.parametrize(
    ("image", "width"), [((1, 7, 9, 20), 24), ((2, 14, 15, 8), 40), ((1, 61, 50, 16), 48)]
)
def test_product_and_the_depthwise_convolution_after_it(
    image: Image, width: int, kernel: int, stride: int, threads: int
) -> None:
    pad = kernel // 2
    x, matrix, filters = (
        stored(image),
        torch.randn(image[3], width),
        torch.randn(width, 1, kernel, kernel),
    )
    bias = torch.randn(width)
    wide = (x.double().permute(0, 2, 3, 1) @ matrix.double() + bias.double()).permute(0, 3, 1, 2)
    wanted = functional.conv2d(
        wide.clamp(0.0, 6.0), filters.double(), bias.double(), stride, pad, groups=width
    )
    steps = widened(image, wanted.shape, KernelKind.WIDENED, kernel, stride)
    weights = {"m": matrix, "f": filters, "b": bias}
    assert_near(performed(steps, weights, [x], threads), wanted)


def widened(
    image: Image, shape: Sequence[int], kind: KernelKind, kernel: int, stride: int
) -> list[NativeStep]:
    """A product and a depthwise convolution that gives a result of this shape."""
    n, width, *lengths = shape
    between, result = Buffer((*image[:3], width)), Buffer((n, lengths[0], lengths[1], width))
    bounds = Activation(low=0.0, high=6.0)
    return [
        NativeStep(kind, Buffer(image, 0), between, ("matrix", "m"), "b", activation=bounds),
        NativeStep(
            KernelKind.DEPTHWISE,
            between,
            result,
            ("depthwise", "f"),
            "b",
            kernel=(kernel, kernel),
            strides=(stride, stride),
            pads=(kernel // 2, kernel // 2),
        ),
    ]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", [3, 5])
@pytest.mark.parametrize(
    ("image", "widths"),
    [
        ((1, 7, 9, 24), (40, 24)),
        ((2, 29, 15, 8), (24, 16)),
        ((1, 61, 50, 16), (48, 24)),
        ((2, 28, 112, 16), (32, 40)),
    ],
)
def test_product_depthwise_convolution_and_product(
    image: Image, widths: tuple[int, int], kernel: int, stride: int, threads: int
) -> None:
    width, depth = widths
    x, bias, other = stored(image), torch.randn(width), torch.randn(depth)
    matrix, narrow = torch.randn(image[3], width), torch.randn(width, depth)
    filters = torch.randn(width, 1, kernel, kernel)
    wide = (x.double().permute(0, 2, 3, 1) @ matrix.double() + bias.double()).permute(0, 3, 1, 2)
    sizes = (stride, kernel // 2)
    filtered = functional.conv2d(
        wide.clamp(0.0, 6.0), filters.double(), bias.double(), *sizes, groups=width
    )
    wanted = (filtered.permute(0, 2, 3, 1) @ narrow.double() + other.double()).permute(0, 3, 1, 2)
    steps = widened(image, filtered.shape, KernelKind.NARROWED, kernel, stride)
    result = Buffer((*steps[1].result.image[:3], depth))
    # As in a network: what the first product reads is added to what the last one computes.
    residual = steps[0].source if result.image == image else None
    last = NativeStep(
        KernelKind.CONVOLUTION, steps[1].result, result, ("matrix", "n"), "o", residual
    )
    weights = {"m": matrix, "f": filters, "b": bias, "n": narrow, "o": other}
    given = performed([*steps, last], weights, [x], threads)
    assert_near(given, wanted if residual is None else wanted + x.double())


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("image", [(1, 12, 14, 16), (2, 40, 33, 16)])
def test_separable_convolutions_one_after_the_other(image: Image, count: int, threads: int) -> None:
    """Each product but the last is done with what follows it, unless one before takes it along."""
    x, depth = stored(image), image[3]
    weights = {"b": torch.randn(depth)}
    steps, buffer, wanted = [], Buffer(image, 0), x.double()
    for number in range(count):
        matrix, filters = torch.randn(depth, depth) / 4, torch.randn(depth, 1, 3, 3) / 3
        weights |= {f"m{number}": matrix, f"f{number}": filters}
        product, filtered = Buffer(image), Buffer(image)
        steps += [
            NativeStep(KernelKind.CONVOLUTION, buffer, product, ("matrix", f"m{number}"), "b"),
            NativeStep(
                KernelKind.DEPTHWISE,
                product,
                filtered,
                ("depthwise", f"f{number}"),
                "b",
                kernel=(3, 3),
                pads=(1, 1),
            ),
        ]
        wide = wanted.permute(0, 2, 3, 1) @ matrix.double() + weights["b"].double()
        wanted = functional.conv2d(
            wide.permute(0, 3, 1, 2),
            filters.double(),
            weights["b"].double(),
            padding=1,
            groups=depth,
        )
        buffer = filtered
    steps = joined(steps, [buffer])
    assert [step.kind for step in steps[-4:-2]] == [KernelKind.NARROWED, KernelKind.DEPTHWISE]
    assert_near(performed(steps, weights, [x], threads), wanted, 1e-5)
