"""What identifies a model: SHA-256 of its message, and of the data files that it names.

The message is hashed in protobuf's deterministic encoding. That is what relayout writes, and what
protobuf's own writers make, so for such a file it is the hash of the file; a model has the same
hash as a file and as a message in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx

from relayout.graph.io.external import ExternalFiles, location_of
from relayout.graph.io.sources import BINARY, encoded, given
from relayout.graph.messages.walk import is_external, tensors_of


@dataclass(frozen=True, slots=True)
class ModelDigest:
    """The hashes of a model."""

    sha256: str
    data: Mapping[str, str] = field(default_factory=dict)
    """By location, the hashes of the data files that the message names."""

    def to_json(self) -> dict[str, Any]:
        return {"sha256": self.sha256, "data": dict(self.data)}


def digest_of(message: onnx.ModelProto, files: ExternalFiles) -> ModelDigest:
    """The hashes of a message whose data lies in these files."""
    outside = [(tensor, place) for tensor, place in tensors_of(message) if is_external(tensor)]
    for tensor, place in outside:
        files.check(tensor, place)
    named = sorted({location_of(tensor) for tensor, _ in outside})
    content = hashlib.sha256(encoded(message, BINARY)).hexdigest()
    return ModelDigest(content, {name: _hash_of(files.found[name].path) for name in named})


def digest_of_file(path: Path) -> ModelDigest:
    """The hashes of a model in a file."""
    files = ExternalFiles.beside(path, allow_hard_links=False)
    return digest_of(given(path).message, files)


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
