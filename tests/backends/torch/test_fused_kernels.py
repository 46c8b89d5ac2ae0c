"""Groups as fused kernels give the numbers that their nodes give."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.ops import law

torch = pytest.importorskip("torch")

from relayout.backends.torch.choose.bench import time_candidates  # noqa: E402
from relayout.backends.torch.choose.memory_format import with_memory_formats  # noqa: E402
from relayout.backends.torch.choose.plan import Plan  # noqa: E402
from relayout.backends.torch.choose.settings import TuningSettings  # noqa: E402
from relayout.backends.torch.choose.tuning import groups_of, tuned  # noqa: E402
from relayout.backends.torch.compiling import program_of  # noqa: E402 - torch may be missing
from relayout.backends.torch.modules.loading import loaded  # noqa: E402
from relayout.backends.torch.modules.source import Source, write_source  # noqa: E402
from relayout.backends.torch.modules.weights import write_weights  # noqa: E402
from relayout.backends.torch.program.dtypes import precision_of  # noqa: E402
from relayout.backends.torch.program.program import EAGER, Program, ProgramStep  # noqa: E402
from relayout.backends.torch.providers.inductor import KernelRun  # noqa: E402
from relayout.backends.torch.providers.native_interface import KernelKind  # noqa: E402
from relayout.backends.torch.providers.native_region import native_regions  # noqa: E402
from relayout.backends.torch.providers.prices import Price, Prices  # noqa: E402
from relayout.backends.torch.providers.provider import Candidate  # noqa: E402
from relayout.backends.torch.providers.registry import providers_named  # noqa: E402
from relayout.backends.torch.providers.site import Site  # noqa: E402
from relayout.backends.torch.providers.work import GroupWork, Work, borders_of  # noqa: E402
from tests.backends.torch.building import can_build  # noqa: E402
from tests.backends.torch.small_networks import SMALL, small_model  # noqa: E402

TOLERANCE = 2e-5
HALF = 1e-2


@pytest.fixture(params=SMALL)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def feeds_of(model: onnx.ModelProto) -> dict[str, Any]:
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    drawn = np.random.default_rng(3).standard_normal(shape, np.float32)
    return {model.graph.input[0].name: drawn}


def assert_same(model: onnx.ModelProto, program: Program, tolerance: float = TOLERANCE) -> str:
    """A program computes what the model does; the text of its module."""
    source = write_source(program)
    feeds = feeds_of(model)
    (wanted,) = law.run(model, feeds, "ort")
    (got,) = loaded(source, "cpu")(feeds).values()
    law.compare("scores", wanted, got, tolerance)
    return source.text


def test_tuned_network_gives_the_same_numbers(name: str) -> None:
    model = small_model(name)
    program, choices = tuned(program_of(model))
    assert_same(model, program)
    assert not any(node.op_type == "BatchNormalization" for node in program.model.graph)
    assert all(choice.chosen in (choice.seconds or {choice.chosen: 0}) for choice in choices)


def quiet_times(work: Work, candidates: Sequence[Candidate], site: Site) -> list[Price]:
    """Times that are kept however busy the machine is."""
    return [replace(price, spread=0.0) for price in time_candidates(work, candidates, site)]


def test_a_choice_is_made_once(name: str) -> None:
    libraries = providers_named(["library", "inductor"])
    device = f"made up for {name}"
    settings = TuningSettings(libraries, quiet_times, Prices.of(device))
    first = tuned(program_of(small_model(name)), settings)[1]

    def fail(*_arguments: Any) -> list[Price]:
        raise AssertionError("timed again")

    settings = TuningSettings(libraries, fail, Prices.of(device))
    assert tuned(program_of(small_model(name)), settings)[1] == first


@pytest.mark.parametrize("way", [0, 1, 2])
def test_native_program_gives_the_same_numbers(name: str, way: int) -> None:
    if not can_build():
        pytest.skip("there is no C++ compiler")
    model = small_model(name)
    program, _ = tuned(program_of(model))
    text = assert_same(model, native(program, way))
    assert "NativeProgram(NATIVE_SOURCE" in text
    assert ("('winograd', " in text) == (way == 1 and name == "residual")
    assert ("('small winograd', " in text) == (way == 2 and name == "residual")


def test_depthwise_convolutions_are_done_with_the_products_around_them() -> None:
    if not can_build():
        pytest.skip("there is no C++ compiler")
    model = small_model("inverted", batch=1)
    program, _ = tuned(program_of(model))
    text = assert_same(model, native(program, way=1))
    assert (
        text.count(f"'kind': {KernelKind.NARROWED}")
        == text.count(f"'kind': {KernelKind.DEPTHWISE}")
        > 0
    )


def native(program: Program, way: int) -> Program:
    """The program with all that kernels can do as native regions; one region takes all of it.

    Of the kernels for a convolution one is taken by its place, or the last.
    """
    made = Plan.of(program, groups_of(program.model))
    fused = {part.nodes[-1]: part.fused for part in made.parts if part.fused is not None}
    regions = native_regions(
        made.library_steps(), fused, lambda _window, kinds: kinds[: way + 1][-1]
    )
    assert len(regions) == 1
    (region,) = regions
    assert not isinstance(region, ProgramStep)
    return Program(program.model, (ProgramStep(region.nodes, region.candidates[0]),))


def test_without_a_compiler_the_same_is_done_in_torch(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not can_build():
        pytest.skip("there is no C++ compiler")
    model = small_model(name)
    program = native(tuned(program_of(model))[0], way=1)
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.warns(UserWarning, match="there is no compiler 'no-such-compiler'"):
        assert_same(model, program)


@pytest.fixture
def native_module() -> Source:
    """A module that runs C++ kernels."""
    if not can_build():
        pytest.skip("there is no C++ compiler")
    return write_source(native(tuned(program_of(small_model("residual")))[0], way=1), "m.weights")


def test_a_model_of_cpp_kernels_may_be_called_from_several_threads(native_module: Source) -> None:
    model = loaded(native_module, "cpu")
    (shape,) = (shape for _, shape, _ in model.inputs.values())
    images = [np.full(shape, each, np.float32) for each in range(6)]
    wanted = [scores_of(model, image) for image in images]

    def repeats(index: int) -> bool:
        return all(
            np.array_equal(scores_of(model, images[index]), wanted[index]) for _ in range(20)
        )

    with ThreadPoolExecutor(len(images)) as pool:
        assert all(pool.map(repeats, range(len(images))))


def scores_of(model: Any, image: Any) -> Any:
    (scores,) = model(image).values()
    return scores


ALONE = """
import sys
sys.modules["relayout"] = sys.modules["onnx"] = sys.modules["onnx_ir"] = None
sys.path.insert(0, sys.argv[1])
import numpy as np, m
model = m.load()
(shape,) = (shape for _, shape, _ in model.inputs.values())
model(np.zeros(shape, np.float32))
print(type(model.weights.native.library).__name__)
"""


@pytest.mark.parametrize(
    ("compiler", "wanted"), [("g++", "NativeLibrary"), ("no-such-compiler", "NoneType")]
)
def test_a_module_of_cpp_kernels_needs_torch_alone(
    native_module: Source, compiler: str, wanted: str, tmp_path: Path
) -> None:
    (tmp_path / "m.py").write_text(native_module.text)
    write_weights(tmp_path / "m.weights", native_module.arrays())
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(tmp_path)],
        env={**os.environ, "CXX": compiler},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == f"{wanted}\n", done.stderr
    assert ("there is no compiler 'no-such-compiler'" in done.stderr) == (wanted == "NoneType")


@pytest.mark.filterwarnings("ignore:torch does the work")
@pytest.mark.parametrize("compiler", ["g++", "no-such-compiler"])
@pytest.mark.parametrize("is_native", [True, False])
def test_nothing_is_kept_for_derivatives(
    is_native: bool, compiler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not can_build():
        pytest.skip("there is no C++ compiler")
    model = small_model("residual")
    program = program_of(model)
    source = write_source(native(tuned(program)[0], way=1) if is_native else program)
    assert ("mode=contextlib.nullcontext" in source.text) == is_native
    monkeypatch.setenv("CXX", compiler)
    feeds = {name: torch.tensor(array) for name, array in feeds_of(model).items()}
    for tensor in feeds.values():
        tensor.requires_grad_()
    (scores,) = loaded(source, "cpu")(feeds).values()
    assert not scores.requires_grad


def relu_conv(x: Any, weight: Any, bias: Any, *rest: Any) -> Any:
    """What cuDNN's kernel computes."""
    return torch.relu(torch.nn.functional.conv2d(x, weight, bias, *rest))


def add_relu_conv(x: Any, weight: Any, other: Any, alpha: float, bias: Any, *rest: Any) -> Any:
    return torch.relu(torch.nn.functional.conv2d(x, weight, bias, *rest) + alpha * other)


@pytest.mark.parametrize("dtype", [None, "float16"])
@pytest.mark.parametrize("last", [False, True])
def test_forms_for_cuda_are_written_right(
    name: str, last: bool, dtype: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With cuDNN's two functions written in torch, since there is no GPU, and nothing compiled."""
    monkeypatch.setattr(torch, "compile", lambda function, **_options: function)
    monkeypatch.setattr(torch, "cudnn_convolution_relu", relu_conv)
    monkeypatch.setattr(torch, "cudnn_convolution_add_relu", add_relu_conv)
    model = small_model(name)
    program, _ = tuned(program_of(model))
    whole = for_cuda(program, dtype, last=last)
    text = assert_same(model, whole, TOLERANCE if dtype is None else HALF)
    if name == "residual":
        assert "torch.cudnn_convolution_add_relu(" in text


def for_cuda(program: Program, dtype: str | None, *, last: bool) -> Program:
    """The program with the first or the last of the kernels that groups could have on CUDA."""
    given = Plan.of(program, groups_of(program.model))
    site = replace(given.site, device="cuda")
    made = replace(given, bench=replace(given.bench, site=site))
    steps: list[ProgramStep] = []
    for part in made.parts:
        group = part.fused
        found = [] if group is None else made.offers(GroupWork.of(group))
        whole = [ProgramStep(part.nodes, found[-1 if last else 0].candidate)] if found else []
        steps += whole or [ProgramStep((node,)) for node in part.nodes]
    return Program(program.model, tuple(steps), precision=precision_of(dtype))


ODD = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[2,4,6,6] x, float[2,3] z) => (float[2,5,6,6] y, float[2,4] q)
<float[5,4,1,1] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20}, float low = {-0.5},
 float[3,4] m = {1,2,3,4,5,6,7,8,9,10,11,12}, float[1] b = {3}>
{ c = Conv(x, w)
  y = Clip(c, low)
  p = MatMul(z, m)
  q = Add(p, b) }
"""


def test_one_bound_and_a_bias_for_all_columns() -> None:
    """What looks like a group of the libraries, but is not quite one."""
    model = onnx.parser.parse_model(ODD)
    source = np.random.default_rng(3)
    feeds = {
        "x": source.standard_normal((2, 4, 6, 6), np.float32),
        "z": source.standard_normal((2, 3), np.float32),
    }
    outputs = loaded(write_source(tuned(program_of(model))[0]), "cpu")(feeds)
    for wanted, (name, got) in zip(law.run(model, feeds, "ort"), outputs.items(), strict=True):
        law.compare(name, wanted, got, TOLERANCE)


POINTWISE = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[2,8,5,5] x, float[2,8,5,5] z) => (float[2,8,5,5] y)
<float[8,1,1] k = {1,2,3,4,5,6,7,8}>
{ a = Mul(x, k)
  b = Sigmoid(a)
  c = Add(b, z)
  y = Gelu(c) }
"""


def failing(_function: Any, **_options: Any) -> Any:
    def fail(*_operands: Any) -> Any:
        raise RuntimeError("no compiler")

    return fail


@pytest.mark.parametrize("compiler", ["none", "failing"])
def test_pointwise_nodes_are_one_kernel(compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Inductor is handed, run as it is, and where Inductor fails."""
    plain = lambda function, **_options: function  # noqa: E731
    monkeypatch.setattr(torch, "compile", plain if compiler == "none" else failing)
    model = onnx.parser.parse_model(POINTWISE)
    program = program_of(model)
    (nodes,) = groups_of(program.model)
    whole = Program(program.model, (ProgramStep(nodes, KernelRun(*borders_of(nodes))),))
    source = write_source(whole)
    assert source.text.count("Kernel(group, dynamic=False)") == 1
    drawn = np.random.default_rng(3).standard_normal((2, 2, 8, 5, 5), np.float32)
    feeds = {"x": drawn[0], "z": drawn[1]}
    (wanted,) = law.run(model, feeds, "ort")
    compiled = loaded(source, "cpu")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        law.compare("y", wanted, compiled(feeds)["y"], TOLERANCE)
        law.compare("y", wanted, compiled(feeds)["y"], TOLERANCE)
    wanted_text = "torch does the work of kernels of Inductor: no compiler"
    assert [str(each.message) for each in caught] == [wanted_text] * (compiler == "failing")


def open_batch(name: str) -> onnx.ModelProto:
    """A network that takes a batch of any length."""
    model = small_model(name)
    del model.graph.value_info[:]
    for port in (*model.graph.input, *model.graph.output):
        port.type.tensor_type.shape.dim[0].dim_param = "batch"
    return model


def assert_same_for_batches(model: onnx.ModelProto, program: Program) -> str:
    """A program computes what the model does for two lengths; the text of its module."""
    source = write_source(program)
    compiled = loaded(source, "cpu")
    for batch in (1, 3):
        drawn = np.random.default_rng(batch).standard_normal((batch, 3, 50, 50), np.float32)
        feeds = {model.graph.input[0].name: drawn}
        (wanted,) = law.run(model, feeds, "ort")
        (got,) = compiled(feeds).values()
        law.compare("scores", wanted, got, TOLERANCE)
    return source.text


def test_a_batch_of_any_length_has_the_same_kernels(name: str) -> None:
    settings = TuningSettings(prices=Prices("here"))
    program, _ = tuned(program_of(open_batch(name)), settings)
    fixed, _ = tuned(program_of(small_model(name, batch=1)), settings)
    made = Plan.of(fixed, groups_of(fixed.model), settings)
    steps = with_memory_formats(made.library_steps(), made)
    assert realised(program.steps) == realised(steps) != []
    assert_same_for_batches(open_batch(name), program)


def realised(steps: Sequence[ProgramStep]) -> list[tuple[str, Any]]:
    """What each step makes, and as what."""
    return [
        (str(step.nodes[-1].outputs[0].name), type(step.realisation))
        for step in steps
        if step.realisation is not EAGER
    ]


def test_a_batch_of_any_length_on_cuda(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda function, **_options: function)
    monkeypatch.setattr(torch, "cudnn_convolution_relu", relu_conv)
    monkeypatch.setattr(torch, "cudnn_convolution_add_relu", add_relu_conv)
    program, _ = tuned(program_of(open_batch(name)))
    text = assert_same_for_batches(open_batch(name), for_cuda(program, None, last=False))
    if name == "residual":
        assert "torch.cudnn_convolution_add_relu(" in text


def test_kernels_are_timed_with_the_lengths_that_are_named() -> None:
    _, choices = tuned(program_of(open_batch("residual"), dims={"batch": 3}))
    assert choices[0].group.startswith("3x3x50x50->3x16x25x25 ")
