"""Operators of detectors."""

from __future__ import annotations

from relayout.backends.torch.program.call import Call, Lowering
from relayout.backends.torch.runtime import detection as runtime


def non_max_suppression(call: Call) -> str:
    most = call.number_text(2) if call.has(2) else "0"
    overlap = call.number_text(3) if call.has(3) else "0.0"
    least = call.number_text(4) if call.has(4) else "None"
    centred = bool(call.integer("center_point_box", 0))
    given = (call.tensor(0), call.tensor(1), most, overlap, least, centred)
    return call.helper(runtime.non_max_suppression, *given)


def roi_align(call: Call) -> str:
    half_pixel = call.string(
        "coordinate_transformation_mode",
        "half_pixel" if call.version >= 16 else "output_half_pixel",
    )
    options = {
        "mode": repr(call.string("mode", "avg")),
        "height": call.integer("output_height", 1),
        "width": call.integer("output_width", 1),
        "ratio": call.integer("sampling_ratio", 0),
        "scale": call.real("spatial_scale", 1.0),
        "shift": 0.5 if half_pixel == "half_pixel" else 0.0,
    }
    return call.helper(runtime.roi_align, *call.tensors, **options)


LOWERINGS: dict[str, Lowering] = {
    "NonMaxSuppression": non_max_suppression,
    "RoiAlign": roi_align,
}
