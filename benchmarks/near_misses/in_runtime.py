"""Run a model by ONNX Runtime, unoptimised: python -m ... MODEL INPUTS.npz RESULTS.npz"""

from __future__ import annotations

import sys

import numpy as np
import onnxruntime as ort


def main(model: str, given: str, found: str) -> None:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(model, options)
    with np.load(given) as feeds:
        results = session.run(None, dict(feeds))
    np.savez(found, *map(np.asarray, results))


if __name__ == "__main__":
    main(*sys.argv[1:])
