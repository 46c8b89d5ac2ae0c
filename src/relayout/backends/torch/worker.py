"""The child of an isolated comparison of a written module with the model it was made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from relayout.backends.torch.runtime.model import Model
from relayout.backends.torch.verification import compare_compiled
from relayout.verify.proof.attempt import attempted
from relayout.verify.verdict import NumericOptions, NumericVerdict
from relayout.verify.worker import answer

OPTIMISED = "optimised model"


def _module(request: Mapping[str, Any], options: NumericOptions) -> NumericVerdict:
    given, fixed = Path(request["given"]), request["fixed"]
    proof = attempted(given, Path(request["optimised"]), fix_defaults=fixed)
    model = _loaded(Path(request["module"]), request["device"])
    verdict = compare_compiled(given, model, options, fixed=fixed)
    # How torch computes it is not proved: numbers decide, whatever is proved of the layouts.
    return replace(verdict, proof=proof, proved_of=OPTIMISED)


def _loaded(path: Path, device: str) -> Model:
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a module")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    model: Model = module.load(device=device)
    return model


if __name__ == "__main__":
    answer(_module)
