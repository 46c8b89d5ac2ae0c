"""Graphs of the kinds on which ONNX Runtime tests its own transpose optimiser.

An operator between Transposes, on an input of which some lengths are open; parameters are
constants, or known at run time alone. The graphs are written anew: what is taken over is which
operators, forms of parameters and opsets are tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

Array = np.ndarray[Any, Any]
SHAPE = (4, 6, 2, 10)
FIRST = "t = Transpose<perm = [0, 3, 1, 2]>(x)"
BACK = (0, 2, 3, 1)


@dataclass(frozen=True)
class Between:
    """An operator on t, of lengths 4, 10, 6, 2, that gives o, which is transposed to y."""

    name: str
    body: str
    last: tuple[int, ...] | None = BACK
    """The order of the second Transpose; None: there is none."""
    constants: Mapping[str, Array] = field(default_factory=dict)
    fed: Mapping[str, Array] = field(default_factory=dict)
    """Parameters that are known at run time alone."""
    opsets: Sequence[int] = (15, 21)
    kind: str = "float"
    result: str = "float"

    def model(self, opset: int) -> onnx.ModelProto:
        end = "y = Identity(o)" if self.last is None else f"y = Transpose<perm = {[*self.last]}>(o)"
        head = f'<ir_version: 9, opset_import: ["": {opset}, "com.microsoft": 1]>'
        port = f"{self.kind}[4, n, 2, m] x"
        text = f"{head} g ({port}) => ({self.result} y) {{ {FIRST} {self.body} {end} }}"
        model = parser.parse_model(text)
        model.graph.input.extend(
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in self.fed.items()
        )
        held = self.constants.items()
        model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in held)
        return model

    def feeds(self) -> dict[str, Array]:
        numbers = np.random.default_rng(3).permutation(480).reshape(SHAPE) - 200
        dtype = helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(self.kind.upper()))
        return {"x": (numbers % 120 - 60).astype(dtype), **self.fed}


def ints(*values: int) -> Array:
    return np.asarray(values, np.int64)


def floats(*values: float) -> Array:
    return np.asarray(values, np.float32)


ROI = floats(0.1, 0.2, 0.3, 0.4, 0.9, 0.8, 0.7, 0.6)
SCALES = floats(1, 0.5, 2.5, 1.5)
OLD = (11, 12)


def _reductions() -> list[Between]:
    found = []
    for op_type in ("ReduceSum", "ReduceMax", "ReduceMean", "ReduceProd", "ReduceLogSumExp"):
        old = (11, 12) if op_type == "ReduceSum" else (11, 15)
        new = (13, 21) if op_type == "ReduceSum" else (18, 21)
        found += [
            Between(f"{op_type} axes kept", f"o = {op_type}<axes = [0, -2]>(t)", opsets=old),
            Between(f"{op_type} axes gone", f"o = {op_type}<axes = [0, -2], keepdims = 0>(t)",
                    (1, 0), opsets=old),
            Between(f"{op_type} all axes", f"o = {op_type}<keepdims = 0>(t)", None, opsets=old),
            Between(f"{op_type} constant axes", f"o = {op_type}(t, a)",
                    constants={"a": ints(0, -2)}, opsets=new),
            Between(f"{op_type} axes of a run", f"o = {op_type}(t, a)", fed={"a": ints(0, -2)},
                    opsets=new),
            Between(f"{op_type} no axes", f"o = {op_type}<noop_with_empty_axes = 1>(t, a)",
                    constants={"a": ints()}, opsets=new),
            Between(f"{op_type} no axes of a run", f"o = {op_type}(t, a)", fed={"a": ints()},
                    opsets=new),
        ]  # fmt: skip
    return found


BETWEEN = [
    *_reductions(),
    Between("Split along an axis", "o, p = Split<axis = 1>(t)", opsets=OLD),
    Between("Split with sizes", "o, p = Split<axis = -3, split = [7, 3]>(t)", opsets=OLD),
    Between("Split with constant sizes", "o, p = Split<axis = 1>(t, s)",
            constants={"s": ints(7, 3)}),
    Between("Split with sizes of a run", "o, p = Split<axis = 1>(t, s)", fed={"s": ints(7, 3)}),
    Between("Concat", "u = Transpose<perm = [0, 3, 1, 2]>(x) o = Concat<axis = 1>(t, u)"),
    Between("Concat with a constant", "o = Concat<axis = 2>(t, c)",
            constants={"c": np.ones((4, 10, 3, 2), np.float32)}),
    Between("Pad with attributes", "o = Pad<pads = [1, -2, 0, 1, 1, 1, 2, 0]>(t)", opsets=(7, 10)),
    Between("Pad by constants", "o = Pad(t, p, v)", opsets=(11, 18),
            constants={"p": ints(1, -2, 0, 1, 1, 1, 2, 0), "v": np.asarray(2, np.float32)}),
    Between("Pad by numbers of a run", "o = Pad(t, p)", opsets=(11, 18),
            fed={"p": ints(1, -2, 0, 1, 1, 1, 2, 0)}),
    Between("Resize by scales", "o = Resize(t, , s)", constants={"s": SCALES}, opsets=(13, 18)),
    Between("Resize, opset 10", "o = Resize(t, s)", constants={"s": SCALES}, opsets=(10,)),
    Between("Resize of a region",
            'o = Resize<coordinate_transformation_mode = "tf_crop_and_resize">(t, r, , s)',
            constants={"r": ROI, "s": ints(4, 9, 8, 7)}, opsets=(13, 18)),
    Between("Resize by scales of a run",
            'o = Resize<coordinate_transformation_mode = "tf_crop_and_resize">(t, r, s)',
            fed={"r": ROI, "s": SCALES}, opsets=(11, 18)),
    Between("Add of a scalar", "o = Add(t, c)", constants={"c": np.asarray(3.25, np.float32)}),
    Between("Add of a vector", "o = Add(t, c)", constants={"c": floats(1, 2)}),
    Between("Add of a matrix", "o = Add(c, t)", constants={"c": np.ones((6, 1), np.float32)}),
    Between("Add of more axes", "o = Add(c, t)", (1, 0, 2, 3, 4),
            constants={"c": np.ones((3, 1, 1, 1, 1), np.float32)}),
    Between("Sub of an input", "o = Sub(t, c)", fed={"c": np.ones((10, 6, 1), np.float32)}),
    Between("Shape", "o = Shape(t)", None, opsets=(7, 21), result="int64"),
    Between("Shape, a part", "o = Shape<start = 1, end = -1>(t)", None, result="int64"),
    Between("Unsqueeze", "o = Unsqueeze<axes = [0, 4]>(t)", (0, 1, 3, 5, 2, 4), opsets=OLD),
    Between("Unsqueeze by constants", "o = Unsqueeze(t, a)", (0, 1, 3, 5, 2, 4),
            constants={"a": ints(0, 4)}),
    Between("Unsqueeze by numbers of a run", "o = Unsqueeze(t, a)", (0, 1, 3, 5, 2, 4),
            fed={"a": ints(0, 4)}),
    Between("Squeeze", "s = ReduceMax<axes = [1]>(t) o = Squeeze<axes = [1]>(s)", (1, 2, 0),
            opsets=OLD),
    Between("Squeeze by constants", "s = ReduceMax<axes = [1]>(t) o = Squeeze(s, a)", (1, 2, 0),
            constants={"a": ints(-3)}, opsets=(13, 15)),
    Between("Squeeze of all units", "s = ReduceMax<axes = [1]>(t) o = Squeeze(s)", (1, 2, 0),
            opsets=(11, 15)),
    Between("Slice with attributes",
            "o = Slice<starts = [1, -3], ends = [3, 10], axes = [0, 2]>(t)", opsets=(7, 9)),
    Between("Slice by constants", "o = Slice(t, s, e, a, i)", opsets=(11, 21),
            constants={"s": ints(1, -1), "e": ints(3, -9), "a": ints(0, -2), "i": ints(1, -2)}),
    Between("Slice along the first axes", "o = Slice(t, s, e)", opsets=(11, 21),
            constants={"s": ints(1, 2), "e": ints(3, 9)}),
    Between("Slice by numbers of a run", "o = Slice(t, s, e, a)", opsets=(11, 21),
            fed={"s": ints(1, -3), "e": ints(3, 10)}, constants={"a": ints(0, 2)}),
    Between("Slice along axes of a run", "o = Slice(t, s, e, a)", opsets=(11, 21),
            fed={"s": ints(1, -3), "e": ints(3, 10), "a": ints(0, 2)}),
    Between("Tile", "o = Tile(t, r)", constants={"r": ints(1, 2, 1, 3)}),
    Between("Tile by numbers of a run", "o = Tile(t, r)", fed={"r": ints(1, 2, 1, 3)}),
    *(
        Between(f"{op_type} {name}", f"o = {op_type}<{settings}>(t)", last, result="int64")
        for op_type in ("ArgMin", "ArgMax")
        for name, settings, last in (
            ("first axis", "keepdims = 1", BACK),
            ("first axis gone", "keepdims = 0", (1, 2, 0)),
            ("axis", "axis = -2", BACK),
            ("axis gone", "axis = -2, keepdims = 0", (0, 2, 1)),
        )
    ),
    *(
        Between(f"{op_type} {axis}, opset {opset}", f"o = {op_type}<axis = {axis}>(t)",
                opsets=(opset,))
        for op_type in ("Softmax", "LogSoftmax", "Hardmax")
        for axis in (0, 1, 2, -1)
        for opset in (12, 15)
        # Before opset 13 Hardmax takes the first of equal numbers over several axes, so their order
        # counts; ONNX Runtime exchanges them all the same.
        if (op_type, opset) != ("Hardmax", 12) or axis not in (0, 1)
    ),
    Between("Softmax of two axes merged", "o = Softmax<axis = 2>(t)", opsets=(11,)),
    Between("HardSigmoid with settings", "o = HardSigmoid<alpha = 0.3>(t)"),
    Between("Cast", "o = Cast<to = 6>(t)", result="int32"),
    Between("Where", "c = Greater(t, z) o = Where(c, t, z)",
            constants={"z": np.asarray(0.5, np.float32)}),
    Between("IsNaN", "o = IsNaN(t)", result="bool"),
    Between("Max of three", "o = Max(t, c, t)", constants={"c": floats(1, 2)}),
    Between("CumSum", "o = CumSum(t, a)", constants={"a": np.asarray(1, np.int64)}),
    Between("Gather along an axis", "o = Gather<axis = 2>(t, i)", constants={"i": ints(3, 0, 3)}),
    Between("Gather at one place", "o = Gather<axis = 2>(t, i)", (0, 2, 1),
            constants={"i": np.asarray(3, np.int64)}),
    Between("TopK", "o, p = TopK<axis = 2>(t, k)", constants={"k": ints(3)}),
    Between("InstanceNormalization", "o = InstanceNormalization(t, s, b)",
            constants={"s": np.arange(10, dtype=np.float32), "b": np.ones(10, np.float32)}),
    Between("QuantizeLinear", "o = QuantizeLinear(t, s, z)", result="int8",
            constants={"s": np.asarray(0.5, np.float32), "z": np.asarray(3, np.int8)}),
    Between("QuantizeLinear along an axis", "o = QuantizeLinear<axis = 1>(t, s, z)", result="int8",
            constants={"s": np.arange(1, 11, dtype=np.float32), "z": np.arange(10, dtype=np.int8)}),
    Between("DequantizeLinear", "o = DequantizeLinear(t, s, z)", kind="int8",
            constants={"s": np.asarray(0.5, np.float32), "z": np.asarray(3, np.int8)}),
    Between("DequantizeLinear along an axis", "o = DequantizeLinear<axis = -3>(t, s)", kind="int8",
            constants={"s": 0.5 + np.arange(10, dtype=np.float32)}),
    Between("MatMul by a constant", "o = MatMul(t, c)",
            constants={"c": np.ones((2, 2), np.float32)}),
    Between("two readers", "r = Relu(t) s = Sigmoid(t) o = Add(r, s)"),
    Between("a Reshape that only merges", "o = Reshape(t, s)", (0, 2, 1),
            constants={"s": ints(4, 10, -1)}),
]  # fmt: skip
