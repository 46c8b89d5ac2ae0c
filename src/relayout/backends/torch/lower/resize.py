"""Images in other sizes, and samples between pixels."""

from __future__ import annotations

import math

import onnx_ir as ir

from relayout.backends.torch.program.call import Call, Lowering
from relayout.backends.torch.program.scalars import literal
from relayout.backends.torch.runtime import resize as runtime

REAL = frozenset((ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16))
"""What torch interpolates; it has no kernels for most integers."""

LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


def resize(call: Call) -> str:
    """Torch's own interpolation where it does the same, else along each axis by itself."""
    mode, coordinates, _ = _modes(call)
    if mode != "nearest" and call.dtype(0) not in REAL:
        raise call.refusal("interpolates integers, which runtimes round each in its own way")
    if mode == "nearest" and coordinates in {"tf_crop_and_resize", "half_pixel_symmetric"}:
        # What lies half-way between two pixels is rounded, and no two runtimes agree on it.
        raise call.refusal(f"picks the nearest pixels in {coordinates} coordinates")
    return _interpolated(call) or _by_axis(call)


def _is_first_form(call: Call) -> bool:
    """Up to opset 10 the scales are the only parameter, and windows start at the edge."""
    return call.op_type == "Upsample" or call.version < 11


def _scales(call: Call) -> tuple[float, ...] | None:
    """The scales of all axes, if they are given and known."""
    attribute = call.view.floats("scales")
    if attribute is not None:
        return attribute
    index = 1 if _is_first_form(call) else 2
    values = call.known(index) if call.has(index) else None
    return None if not values else tuple(float(value) for value in values)


def _sizes(call: Call) -> tuple[int, ...] | None:
    return call.known_ints(3) if not _is_first_form(call) and call.has(3) else None


def _modes(call: Call) -> tuple[str, str, str]:
    if _is_first_form(call):
        return call.string("mode", "nearest"), "asymmetric", "simple"
    return (
        call.string("mode", "nearest"),
        call.string("coordinate_transformation_mode", "half_pixel"),
        call.string("nearest_mode", "round_prefer_floor"),
    )


def _interpolated(call: Call) -> str | None:
    """F.interpolate, or None where it would compute something else."""
    rank, scales, sizes = call.rank(0), _scales(call), _sizes(call)
    is_plain = not any(
        name in call.view.node.attributes
        for name in ("axes", "antialias", "exclude_outside", "keep_aspect_ratio_policy")
    )
    is_real = call.dtype(0) in REAL
    if rank not in {3, 4, 5} or not is_plain or not is_real or (scales is None and sizes is None):
        return None
    shape = call.shape(0)
    if scales is not None and scales[:2] != (1.0, 1.0):
        return None
    if sizes is not None and (shape is None or sizes[:2] != shape[:2]):
        return None
    arguments = _torch_mode(call, rank - 2, scales)
    if arguments is None:
        return None
    if sizes is not None:
        return f"F.interpolate({call.tensor(0)}, size={sizes[2:]!r}, {arguments})"
    factor = scales[2:] if scales is not None else ()
    text = literal(factor[0]) if len(set(factor)) == 1 else repr(factor)
    return f"F.interpolate({call.tensor(0)}, scale_factor={text}, {arguments})"


def _torch_mode(call: Call, spatial: int, scales: tuple[float, ...] | None) -> str | None:
    mode, coordinates, rounding = _modes(call)
    if mode == "nearest":
        is_nearest = scales is not None and _repeats(coordinates, rounding, scales)
        return 'mode="nearest"' if is_nearest else None
    name = LINEAR[spatial] if mode == "linear" else "bicubic"
    is_cubic = mode == "cubic" and spatial == 2 and call.real("cubic_coeff_a", -0.75) == -0.75
    if mode != "linear" and not is_cubic:
        return None
    if coordinates == "align_corners" and scales is None:
        return f'mode="{name}", align_corners=True'
    is_whole = scales is None or all(scale % 1 == 0 for scale in scales)
    return f'mode="{name}"' if coordinates == "half_pixel" and is_whole else None


def _repeats(coordinates: str, rounding: str, scales: tuple[float, ...]) -> bool:
    """Whether each pixel is repeated, which is all that torch does.

    It multiplies by the inverse of the scale, which is exact for powers of two alone.
    """
    if not all(scale >= 1 and math.frexp(scale)[0] == 0.5 for scale in scales):
        return False
    if coordinates == "asymmetric":
        return rounding in {"floor", "simple"}
    # No source lies half-way between two pixels then.
    is_half_pixel = coordinates in {"half_pixel", "pytorch_half_pixel"}
    return is_half_pixel and rounding in {"round_prefer_floor", "round_prefer_ceil"}


def _by_axis(call: Call) -> str:
    mode, coordinates, rounding = _modes(call)
    scales, sizes = "None", "None"
    if _is_first_form(call):
        known = _scales(call)
        scales = call.list_text(1) if known is None else repr(list(known))
    elif call.has(3):
        sizes = call.list_text(3)
    elif call.has(2):
        scales = call.list_text(2)
    axes = call.ints("axes")
    options = {
        "axes": None if axes is None else list(axes),
        "roi": call.list_text(1) if coordinates == "tf_crop_and_resize" else None,
        "mode": repr(mode),
        "coordinates": repr(coordinates),
        "rounding": repr(rounding),
        "cubic": literal(call.real("cubic_coeff_a", -0.75)),
        "excludes": bool(call.integer("exclude_outside", 0)),
        "outside": literal(call.real("extrapolation_value", 0.0)),
        "antialias": bool(call.integer("antialias", 0)),
        "policy": repr(call.string("keep_aspect_ratio_policy", "stretch")),
    }
    return call.helper(runtime.resize, call.tensor(0), scales, sizes, **options)


def grid_sample(call: Call) -> str:
    modes = {"linear": "bilinear", "cubic": "bicubic"}
    mode = call.string("mode", "linear" if call.version >= 20 else "bilinear")
    mode = modes.get(mode, mode)
    padding, corners = call.string("padding_mode", "zeros"), bool(call.integer("align_corners", 0))
    if mode == "bicubic" and call.rank(0) != 4:
        raise call.refusal("is cubic in three axes")
    options = f"mode={mode!r}, padding_mode={padding!r}, align_corners={corners}"
    return f"F.grid_sample({call.tensor(0)}, {call.tensor(1)}, {options})"


def affine_grid(call: Call) -> str:
    corners = bool(call.integer("align_corners", 0))
    return f"F.affine_grid({call.tensor(0)}, {call.list_text(1)}, align_corners={corners})"


LOWERINGS: dict[str, Lowering] = {
    "Resize": resize,
    "Upsample": resize,
    "GridSample": grid_sample,
    "AffineGrid": affine_grid,
}
