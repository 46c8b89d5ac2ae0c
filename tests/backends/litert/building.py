"""Small models, run by ONNX Runtime and by LiteRT on the same inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from relayout.backends.litert.compiling import compile_model
from relayout.backends.litert.interpreting import LiteModel
from relayout.backends.options import CompileOptions

OPSET = 20
Array = np.ndarray[Any, Any]


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int]],
    outputs: Sequence[str],
    constants: Mapping[str, Any] | None = None,
    opset: int = OPSET,
) -> onnx.ModelProto:
    """A model of floats."""
    graph = helper.make_graph(
        list(nodes),
        "small",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()],
    )
    domains = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=domains, ir_version=10)
    return onnx.shape_inference.infer_shapes(model)


def one_node(
    op_type: str,
    shape: Sequence[int],
    constants: Sequence[Any] = (),
    opset: int = OPSET,
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node that reads an input and constants."""
    names = [f"c{index}" if array is not None else "" for index, array in enumerate(constants)]
    node = helper.make_node(op_type, ["x", *names], ["y"], **attributes)
    held = {f"c{index}": array for index, array in enumerate(constants) if array is not None}
    return model_of([node], {"x": shape}, ["y"], held, opset)


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def feeds_of(model: onnx.ModelProto) -> dict[str, Array]:
    return {
        value.name: drawn(*(dim.dim_value for dim in value.type.tensor_type.shape.dim), seed=index)
        for index, value in enumerate(model.graph.input)
    }


def expected(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, dict(feeds)))


def assert_runs_alike(model: onnx.ModelProto, tolerance: float = 2e-5) -> LiteModel:
    """LiteRT's results are those of ONNX Runtime; gives what it ran."""
    feeds = feeds_of(model)
    compiled = compile_model(model, CompileOptions())
    results = compiled(feeds)
    assert list(results) == [value.name for value in model.graph.output]
    for result, wanted in zip(results.values(), expected(model, feeds), strict=True):
        assert result.dtype == wanted.dtype
        np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance)
    return compiled


def builtins_of(compiled: LiteModel) -> list[str]:
    """The builtins of a file, in the order of a run."""
    from ai_edge_litert import schema_py_generated as schema  # noqa: PLC0415 - in an extra

    file = schema.Model.GetRootAs(compiled.content, 0)
    graph = file.Subgraphs(0)
    names = {number: name for name, number in vars(schema.BuiltinOperator).items()}
    codes = [file.OperatorCodes(i).BuiltinCode() for i in range(file.OperatorCodesLength())]
    operators = [graph.Operators(i) for i in range(graph.OperatorsLength())]
    return [names[codes[operator.OpcodeIndex()]] for operator in operators]
