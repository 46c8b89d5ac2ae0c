"""The road of a model to torch: through the optimiser, verified before it is returned."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

torch = pytest.importorskip("torch")

import relayout  # noqa: E402 - torch may be missing
from relayout.backends.options import CompileOptions  # noqa: E402
from relayout.backends.registry import BACKENDS  # noqa: E402
from relayout.backends.torch import compiling  # noqa: E402
from relayout.backends.torch.choose.notices import KernelWarning  # noqa: E402
from relayout.backends.torch.choose.tuning import tuned  # noqa: E402
from relayout.backends.torch.compiling import compile_model, program_of, write_module  # noqa: E402
from relayout.backends.torch.verification import CompiledFiles  # noqa: E402
from relayout.cli import main  # noqa: E402
from relayout.cli.demo_model import network  # noqa: E402
from relayout.verify.proof.attempt import attempted  # noqa: E402
from relayout.verify.verdict import NumericOptions, NumericVerdict  # noqa: E402
from tests.rewrite.rewriting import parse  # noqa: E402

ATTENTION = """
    g (float[2,5,8] x) => (float[2,5,8] y)
    <int64[4] split = {2,5,2,4}, int64[3] merge = {2,5,8}, float scale = {0.5}> {
      r = Reshape(x, split)
      q = Transpose<perm=[0,2,1,3]>(r)
      k = Transpose<perm=[0,2,3,1]>(r)
      v = Transpose<perm=[0,2,1,3]>(r)
      s = MatMul(q, k)
      m = Mul(s, scale)
      p = Softmax<axis=-1>(m)
      o = MatMul(p, v)
      t = Transpose<perm=[0,2,1,3]>(o)
      y = Reshape(t, merge) }"""


def plain_text(model: onnx.ModelProto, folder: Path) -> str:
    files = write_module(model, folder / "plain.py", CompileOptions(tune=False)).files
    return files[0].read_text(encoding="utf-8")


def test_layouts_are_dissolved_before_a_module_is_written(tmp_path: Path) -> None:
    given = network()
    count = [node.op_type for node in given.graph.node].count("Transpose")
    text = plain_text(given, tmp_path)
    forward = text[text.index("def forward") :]
    assert count > 8
    assert len(re.findall(r"\.permute\(", forward)) <= 2


@pytest.mark.parametrize("opset", [17, 23])
def test_attention_is_raised_to_the_operator_of_torch(opset: int, tmp_path: Path) -> None:
    given = parse(ATTENTION, opset)
    text = plain_text(given, tmp_path)
    assert "scaled_dot_product_attention" in text
    assert "softmax" not in text[text.index("def forward") :]
    feed = np.random.default_rng(0).standard_normal((2, 5, 8), np.float32)
    assert relayout.compile(given, tune=False)(feed)["y"].shape == (2, 5, 8)


def test_a_model_is_verified_before_it_is_returned(tmp_path: Path) -> None:
    """The given file states something else by the time of the comparison."""
    given = tmp_path / "given.onnx"
    onnx.save(parse("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"), given)

    def swap(stage: str) -> None:
        if "comparing" in stage:
            onnx.save(parse("g (float[2,3] x) => (float[2,3] y) { y = Neg(x) }"), given)

    options = CompileOptions(tune=False, inputs=relayout.NumericOptions())
    with pytest.raises(relayout.VerificationError, match="verify=False"):
        compile_model(given, options, swap)
    assert relayout.compile(given, tune=False, verify=False) is not None


def test_nothing_is_written_of_a_module_that_differs(tmp_path: Path) -> None:
    given, output = tmp_path / "given.onnx", tmp_path / "out" / "module.py"
    output.parent.mkdir()
    onnx.save(parse("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"), given)

    def swap(stage: str) -> None:
        if "comparing" in stage:
            onnx.save(parse("g (float[2,3] x) => (float[2,3] y) { y = Neg(x) }"), given)

    options = CompileOptions(tune=False, inputs=relayout.NumericOptions())
    compilation = write_module(given, output, options, swap)
    assert not compilation.accepted
    assert list(output.parent.iterdir()) == []


def test_kernels_that_round_too_much_make_way_for_plainer_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Who refuses the fastest kernels of a model refuses neither all others nor the model."""
    differs, equal = (NumericVerdict(status) for status in ("differs", "equal"))
    given = iter([differs, equal, differs, differs, equal, differs, differs, differs])
    monkeypatch.setattr(compiling, "_verdict", lambda *_: next(given))
    model, options = parse(ATTENTION), CompileOptions(inputs=NumericOptions())
    with pytest.warns(KernelWarning, match="kernels are now of library, torch, inductor"):
        compiling.compile_model(model, options)
    with pytest.warns(KernelWarning, match="kernels are now of torch$"):
        made = compiling.write_module(model, tmp_path / "made.py", options)
    assert made.verdict is equal
    assert (tmp_path / "made.py").exists()
    with pytest.warns(KernelWarning), pytest.raises(relayout.VerificationError):
        compiling.compile_model(model, options)


def test_a_module_of_which_nothing_was_compared_is_not_compiled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = iter([NumericVerdict("unknown")])
    monkeypatch.setattr(compiling, "_verdict", lambda *_: next(given))
    with pytest.raises(relayout.VerificationError):
        compiling.compile_model(parse(ATTENTION), CompileOptions(inputs=NumericOptions()))


def test_the_command_line_writes_what_was_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, output = tmp_path / "given.onnx", tmp_path / "module.py"
    onnx.save(parse(ATTENTION), given)
    assert main(["compile", str(given), "-o", str(output), "--plain"]) == 0
    assert "wrote" in capsys.readouterr().out
    files = sorted(file.name for file in tmp_path.iterdir())
    assert files == ["given.onnx", "module.py", "module.safetensors"]
    assert main(["compile", str(given), "-o", str(tmp_path / "no" / "module.py")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_arguments_are_not_mutated() -> None:
    given = network()
    before = given.SerializeToString()
    program = program_of(given)
    steps = len(program.steps)
    names = [node.name for node in program.model.graph]
    tuned(program)
    assert given.SerializeToString() == before
    assert [node.name for node in program.model.graph] == names
    assert len(program.steps) == steps


def test_a_backend_may_be_given_as_a_value() -> None:
    backend = replace(BACKENDS["torch"], name="mine")
    given = parse("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    model = relayout.compile(given, target=backend, tune=False, verify=False)
    assert model(np.full((2, 3), -1.0, np.float32))["y"].tolist() == [[0.0] * 3] * 2


def test_an_unknown_backend_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(relayout.RelayoutError, match=r"unknown backend 'tvm'; .* torch"):
        relayout.compile(network(), target="tvm")


def test_what_is_proved_of_the_optimised_model_is_said(tmp_path: Path) -> None:
    """Layouts are proved, how torch computes them is compared: the last line says both."""
    options = CompileOptions(tune=False, inputs=NumericOptions())
    verdict = write_module(network(), tmp_path / "module.py", options).verdict
    assert verdict is not None
    assert verdict.proof is not None
    assert verdict.proof.holds
    assert verdict.summary().startswith("optimised model proved")
    assert "1 output" in verdict.summary()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["module.py", "module.safetensors"]


def test_numbers_decide_about_a_module_whatever_is_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def differing(files: CompiledFiles, *_: object) -> NumericVerdict:
        seen.append(attempted(files.given, files.optimised, fix_defaults=True))
        return NumericVerdict("differs", proof=seen[0], proved_of="optimised model")

    monkeypatch.setattr("relayout.backends.torch.compiling.compare_written", differing)
    options = CompileOptions(tune=False, inputs=NumericOptions())
    done = write_module(network(), tmp_path / "module.py", options)
    assert seen[0].holds
    assert not done.accepted
    assert not any(tmp_path.iterdir())
