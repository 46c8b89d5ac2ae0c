"""What written modules look like."""

from __future__ import annotations

import json
import re
import struct
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

torch = pytest.importorskip("torch")

import relayout  # noqa: E402 - torch may be missing
from relayout.backends.torch.compiling import program_of  # noqa: E402
from relayout.backends.torch.modules.loading import loaded  # noqa: E402
from relayout.backends.torch.modules.source import write_source  # noqa: E402
from relayout.backends.torch.program.names import PythonNames, identifier  # noqa: E402
from relayout.backends.torch.program.statements import Statement, finished  # noqa: E402
from relayout.backends.torch.runtime.model import as_tensor  # noqa: E402
from relayout.cli import main  # noqa: E402
from relayout.errors import RelayoutError  # noqa: E402
from tests.backends.torch.networks import cnn, transformer  # noqa: E402
from tests.backends.torch.small_networks import small_model  # noqa: E402
from tests.ops import law  # noqa: E402


def parsed(body: str, interface: str = "(float[N,4] x) => (float[N,4] y)") -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 20]> network {interface} {body}'
    )


def forward(model: onnx.ModelProto) -> list[str]:
    """The lines of the function that runs a model."""
    text = write_source(program_of(model)).text
    return text.partition("def forward")[2].partition("\n\n\n")[0].splitlines()[1:]


def test_a_statement_a_node_and_tensors_are_freed_after_their_last_reader() -> None:
    model = parsed("{ a = Relu(x) b = Sigmoid(a) c = Tanh(a) y = Add(b, c) }")
    assert forward(model) == [
        "    a = torch.relu(x)",
        "    b = torch.sigmoid(a)",
        "    c = torch.tanh(a)",
        "    del a",
        "    y = b + c",
        "    return y,",
    ]


def test_arithmetic_of_shapes_stays_numbers() -> None:
    body = """{
      shape = Shape(x)
      zero = Constant <value_int = 0> ()
      two = Constant <value_ints = [2]> ()
      axes = Constant <value_ints = [0]> ()
      n = Gather(shape, zero)
      rows = Unsqueeze(n, axes)
      twice = Mul(rows, two)
      target = Concat <axis = 0> (twice, two)
      y = Reshape(x, target)
    }"""
    lines = forward(parsed(body, "(float[N,4] x) => (float[M,2] y)"))
    assert not any("tensor" in line or "tolist" in line for line in lines), lines
    result = relayout.compile(parsed(body, "(float[N,4] x) => (float[M,2] y)"), verify=False)
    assert result(np.ones((3, 4), np.float32))["y"].shape == (6, 2)


def test_transposes_are_views_and_constants_of_one_element_are_numbers() -> None:
    body = "{ a = Transpose <perm = [1, 0]> (x) h = Constant <value_float = 0.5> () y = Mul(a, h) }"
    lines = forward(parsed(body, "(float[N,4] x) => (float[4,N] y)"))
    assert lines[:2] == ["    a = x.permute(1, 0)", "    y = a * 0.5"]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("/block.0/Conv_output_0", "block_0_Conv"), ("536", "v536"), ("é", "v"), ("a b", "a_b")],
)
def test_names_become_identifiers(name: str, wanted: str) -> None:
    assert identifier(name) == wanted
    assert wanted.isidentifier()


def test_no_name_is_given_twice_or_hides_another() -> None:
    names = PythonNames()
    given = [names.fresh(hint) for hint in ("x", "x", "x_1", "list", "lambda", "torch")]
    assert len(set(given)) == len(given)
    assert not {"list", "lambda", "torch"}.intersection(given)


def test_what_a_function_reads_lives_as_long_as_it_may_be_called() -> None:
    statements = [
        Statement("a = f(x)"),
        Statement("n = x.shape[0]", is_scalar=True),
        Statement("def body():\n    return a + 1"),
        Statement("b = g(x)"),
        Statement("c = body() + b"),
        Statement("d = h(c)"),
    ]
    lines = finished(statements, "d,")
    assert not any("shape" in line for line in lines), "nothing reads it"
    assert lines.index("del a, b") > lines.index("c = body() + b")


def test_wrong_inputs_have_different_messages() -> None:
    compiled = relayout.compile(parsed("{ y = Relu(x) }"), verify=False)
    good = np.ones((2, 4), np.float32)
    for arguments, message in (
        (({"z": good},), "no input 'z'"),
        ((), "input 'x' is missing"),
        ((good, good), "2 inputs"),
        ((good.astype(np.int64),), "type torch.int64"),
    ):
        with pytest.raises(TypeError, match=message):
            compiled(*arguments)
    for shape in ((2, 5), (2, 4, 1)):
        with pytest.raises(ValueError, match=re.escape(f"shape {list(shape)}, not ['N', 4]")):
            compiled(np.ones(shape, np.float32))


@pytest.mark.parametrize(
    ("dtype", "held"),
    [
        (np.float32, "float32"),
        (np.dtype(np.int64).newbyteorder("<"), "int64"),
        (ml_dtypes.bfloat16, "bfloat16"),
        (ml_dtypes.float8_e5m2, "float8_e5m2"),
        (ml_dtypes.int4, "int8"),
    ],
)
def test_arrays_that_must_not_be_written_become_tensors(dtype: Any, held: str) -> None:
    array = np.array([[1, 2], [3, 4]]).astype(dtype)
    array.flags.writeable = False
    with warnings.catch_warnings(action="error"):
        tensor = as_tensor(array, "cpu")
    assert tensor.dtype == getattr(torch, held)
    assert tensor.float().tolist() == [[1, 2], [3, 4]]


def test_weights_among_the_inputs_are_constants_unless_they_may_be_overridden() -> None:
    interface = "(float[N,4] x, float[4] b) => (float[N,4] y) <float[4] b = {1, 2, 3, 4}>"
    model = parsed("{ y = Add(x, b) }", interface)
    zeros, ones = np.zeros((1, 4), np.float32), np.ones(4, np.float32)
    assert relayout.compile(model, verify=False)(zeros)["y"].tolist() == [[1, 2, 3, 4]]
    with pytest.raises(TypeError, match="no input 'b'"):
        relayout.compile(model, verify=False)(x=zeros, b=ones)
    free = relayout.compile(model, fix_defaults=False, verify=False)
    assert free(zeros)["y"].tolist() == [[1, 2, 3, 4]]
    assert free(x=zeros, b=ones)["y"].tolist() == [[1, 1, 1, 1]]


@pytest.mark.parametrize("dtype", [None, "float16", "bfloat16"])
def test_the_least_number_stays_finite_in_reduced_types(dtype: str | None) -> None:
    """Exporters mask with it: what is not masked is 0 times it."""
    interface = "(float[N,4] x) => (float[N,4] y) <float[4] m = {0, 0, 1, 1}>"
    body = """{
      least = Constant <value_float = -3.4028235e38> ()
      every = Constant <value_floats = [-3.4028235e38, 1.0, -3.4028235e38, 1.0]> ()
      a = Mul(m, every)
      b = Mul(x, least)
      c = Clip(b, least)
      d = Add(a, c)
      y = Softmax(d)
    }"""
    result = relayout.compile(parsed(body, interface), dtype=dtype, verify=False)(
        np.zeros((1, 4), np.float32)
    )
    assert np.isfinite(result["y"]).all()


def test_other_targets_devices_and_types_are_refused() -> None:
    model = parsed("{ y = Relu(x) }")
    with pytest.raises(RelayoutError, match="unknown backend 'tvm'"):
        relayout.compile(model, target="tvm")
    with pytest.raises(RelayoutError, match="unknown device 'tpu'"):
        relayout.compile(model, device="tpu")
    with pytest.raises(RelayoutError, match="unknown dtype 'int8'"):
        relayout.compile(model, dtype="int8")


def test_compile_writes_a_verified_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, _ = cnn()
    onnx.save(model, tmp_path / "m.onnx")
    output = tmp_path / "m_torch.py"
    assert main(["compile", str(tmp_path / "m.onnx"), "-o", str(output)]) == 0
    assert "equal: 1 output" in capsys.readouterr().out
    data = output.with_suffix(".safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    assert max(entry["data_offsets"][1] for entry in header.values()) == len(data) - 8 - size
    assert all(f"w.{name}" in output.read_text() for name in header)


def test_a_compiled_model_is_compared_with_the_defaults_of_its_file(tmp_path: Path) -> None:
    interface = "(float[N,4] x, float[4] b) => (float[N,4] y) <float[4] b = {1, 2, 3, 4}>"
    onnx.save(parsed("{ y = Add(x, b) }", interface), tmp_path / "m.onnx")
    assert main(["compile", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m_torch.py")]) == 0


def test_run_reports_and_keeps_the_outputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, feeds = transformer()
    onnx.save(model, tmp_path / "m.onnx")
    np.savez(tmp_path / "in.npz", allow_pickle=False, **feeds)
    arguments = ["run", str(tmp_path / "m.onnx")]
    kept = tmp_path / "out.npz"
    assert main([*arguments, "--feeds", str(tmp_path / "in.npz"), "-o", str(kept)]) == 0
    name = model.graph.output[0].name
    with np.load(kept) as outputs:
        assert outputs[name].shape == (2, 1, 12)
    assert f"{name}: float32 [2, 1, 12], min" in capsys.readouterr().out
    assert main([*arguments, "--dim", "batch=3", "--dim", "length=5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"][0]["shape"] == [3, 1, 12]
    assert main(arguments) == 2
    assert "--dim batch=" in capsys.readouterr().err


def test_joined_steps_are_one_function_for_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole of a module is traced without a break, as its steps are written."""
    compile_ = torch.compile
    traced = []

    def traced_whole(function: Any, **_options: Any) -> Any:
        traced.append(function.__name__)
        return compile_(function, backend="eager", fullgraph=True)

    monkeypatch.setattr(torch, "compile", traced_whole)
    model = small_model("residual")
    program = replace(program_of(model, device="cuda"), is_joined=True)
    source = write_source(program)
    assert "Replayed(InductorKernel(forward, dynamic=False))" in source.text
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    feeds = {"image": np.random.default_rng(3).standard_normal(shape, np.float32)}
    (wanted,) = law.run(model, feeds, "ort")
    compiled = loaded(source, "cpu")
    (got,) = compiled(feeds).values()
    law.compare("scores", wanted, got, 2e-5)
    assert traced == ["forward"]
    whole: Any = compiled.forward
    assert whole.forward.compiled is not None  # it did not fall back


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_here_is_named_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "m.onnx"
    onnx.save(parsed("{ y = Relu(x) }"), file)
    written = tmp_path / "m.py"
    assert main(["compile", str(file), "--device", "cuda", "-o", str(written)]) == 2
    assert capsys.readouterr().err == "relayout: there is no CUDA device here\n"
    assert not written.exists()
