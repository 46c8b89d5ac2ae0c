"""relayout where other tools are: `simplify` as onnxsim has it, and a pass of onnx_ir."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import onnx
import onnx_ir as ir

from relayout.errors import RelayoutError
from relayout.graph.io.sources import ModelSource
from relayout.optimizer.optimize import optimize
from relayout.verify.verdict import NumericOptions

Shapes = Mapping[str, Sequence[int]]


def simplify(
    model: str | PathLike[str] | onnx.ModelProto,
    check_n: int = 0,
    *,
    test_input_shapes: Shapes | None = None,
    overwrite_input_shapes: Shapes | None = None,
    **options: Any,
) -> tuple[onnx.ModelProto, bool]:
    """The model with fewer Transposes, and whether it was verified: called as `onnxsim.simplify`.

    `check_n` is how often onnxsim runs both models; here they are always proved or compared, so it
    asks for nothing more. `test_input_shapes` are the shapes to compare on. Inputs keep
    their shapes: `overwrite_input_shapes` is refused. Other options are those of
    `relayout.optimize`.
    """
    if check_n < 0:
        raise RelayoutError(f"check_n is a count, not {check_n}")
    if overwrite_input_shapes:
        raise RelayoutError("relayout does not change the shapes of inputs")
    shapes = {name: tuple(shape) for name, shape in (test_input_shapes or {}).items()}
    result = optimize(model, inputs=NumericOptions(shapes=shapes), **options)
    return result.model, result.accepted


class LayoutPass(ir.passes.FunctionalPass):
    """`relayout.optimize` as a pass, for `onnx_ir.passes.Sequential`.

    Options are those of `relayout.optimize`. A model whose result is not verified is given back as
    it came.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """A new model, or the given one where nothing better was found."""
        source: ModelSource = ir.to_proto(model)
        result = optimize(source, **self.options)
        if not result.changed or not result.accepted:
            return ir.passes.PassResult(model.clone(), modified=False)
        return ir.passes.PassResult(ir.from_proto(result.model), modified=True)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"LayoutPass({given})"
