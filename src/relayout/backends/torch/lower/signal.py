"""Fourier transforms."""

from __future__ import annotations

import onnx_ir as ir

from relayout.backends.torch.program.call import Call, Lowering
from relayout.backends.torch.runtime import signal as runtime


def dft(call: Call) -> str:
    """The axis is an attribute up to opset 19 and an operand from then on."""
    if call.version >= 20:
        axis = call.number_text(2) if call.has(2) else "-2"
    else:
        axis = str(call.integer("axis", 1))
    length = call.number_text(1) if call.has(1) else "None"
    inverse, onesided = bool(call.integer("inverse", 0)), bool(call.integer("onesided", 0))
    return call.helper(runtime.dft, call.tensor(0), length, axis, inverse, onesided)


def stft(call: Call) -> str:
    length = call.number_text(3) if call.has(3) else "None"
    onesided = bool(call.integer("onesided", 1))
    given = (call.tensor(0), call.number_text(1), call.optional(2), length, onesided)
    return call.helper(runtime.stft, *given)


def window(name: str) -> Lowering:
    def lower(call: Call) -> str:
        dtype = call.torch_dtype(call.integer("output_datatype", ir.DataType.FLOAT))
        periodic = bool(call.integer("periodic", 1))
        size = call.number_text(0)
        return call.helper(runtime.cosine_window, repr(name), size, periodic, dtype, "w.device")

    return lower


def mel_weights(call: Call) -> str:
    dtype = call.torch_dtype(call.integer("output_datatype", ir.DataType.FLOAT))
    numbers = [call.number_text(index) for index in range(5)]
    return call.helper(runtime.mel_weights, *numbers, dtype, "w.device")


LOWERINGS: dict[str, Lowering] = {
    "DFT": dft,
    "STFT": stft,
    "HannWindow": window("hann"),
    "HammingWindow": window("hamming"),
    "BlackmanWindow": window("blackman"),
    "MelWeightMatrix": mel_weights,
}
