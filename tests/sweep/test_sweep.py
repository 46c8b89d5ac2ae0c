"""A sweep does each model once, keeps what is done, and names what failed."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import onnx
import pytest

from relayout.cli import main
from relayout.cli.demo_model import network
from relayout.errors import RelayoutError
from relayout.sweep.job import SWEPT, SweptCall
from relayout.sweep.pool import Pool
from relayout.sweep.run import ModelSweep, SweepProgress, all_done
from relayout.sweep.sources import found_models
from tests.verify.models import one_node

STAND_IN = [str(Path(__file__).with_name("stand_in.py"))]


def folder_of(tmp_path: Path, *names: str) -> Path:
    folder = tmp_path / "given"
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.onnx").write_text(name)
    return folder


def swept(folder: Path, out: Path, size: int = 2, **settings: Any) -> list[dict[str, Any]]:
    call = SweptCall(SWEPT["optimize"], "model.onnx", **settings)
    return ModelSweep.of([str(folder)], out, call).run(Pool(size, STAND_IN), lambda _: None)


def started(folder: Path) -> Counter[str]:
    log = folder / "started.txt"
    return Counter(log.read_text().split() if log.exists() else ())


def test_failures_are_isolated_and_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "a", "bad", "crash", "refused", "slow", "z")
    began = time.monotonic()
    records = {one["name"]: one for one in swept(folder, tmp_path / "out", seconds=2.0, size=6)}
    assert time.monotonic() - began < 20
    found = [(name, one["status"]) for name, one in records.items()]
    assert found[:3] == [("a", "done"), ("bad", "failed"), ("crash", "crashed")]
    assert found[3:] == [("refused", "refused"), ("slow", "timed out"), ("z", "done")]
    assert records["bad"]["error"] == "no model at all"
    assert records["refused"]["error"] == "differs: y"
    assert not all_done(list(records.values()))
    files = sorted(path.name for path in (tmp_path / "out/models/bad").iterdir())
    assert files == ["record.json"]
    assert (tmp_path / "out/models/a/model.onnx").read_text() == "a"


def test_a_second_sweep_does_nothing_unless_something_changed(tmp_path: Path) -> None:
    folder, out = folder_of(tmp_path, "a", "b", "bad"), tmp_path / "out"
    first = swept(folder, out)
    assert swept(folder, out) == first
    assert started(folder) == {"a": 1, "b": 1, "bad": 1}
    (folder / "a.onnx").touch()
    assert [one["sha256"] for one in swept(folder, out)] == [one["sha256"] for one in first]
    assert started(folder)["a"] == 1
    (folder / "a.onnx").write_text("another")
    assert swept(folder, out)[0]["sha256"] != first[0]["sha256"]
    assert started(folder) == {"a": 2, "b": 1, "bad": 1}
    swept(folder, out, options=("--minimize", "count"))
    assert started(folder) == {"a": 3, "b": 2, "bad": 2}


def test_parts_make_up_the_whole(tmp_path: Path) -> None:
    folder, out = folder_of(tmp_path, *"abcde"), tmp_path / "out"
    sweep = ModelSweep.of([str(folder)], out, SweptCall(SWEPT["optimize"]))
    for number in (1, 2, 3):
        sweep.part((number, 3)).run(Pool(2, STAND_IN), lambda _: None)
    assert started(folder) == dict.fromkeys("abcde", 1)
    assert len(sweep.run(Pool(2, STAND_IN), lambda _: None)) == 5
    assert started(folder) == dict.fromkeys("abcde", 1)


def test_what_is_left_of_a_killed_sweep_is_done_by_the_next(tmp_path: Path) -> None:
    folder, out = folder_of(tmp_path, *(f"m{i}" for i in range(8))), tmp_path / "out"
    source = (
        "import sys; from pathlib import Path\n"
        "from tests.sweep.test_sweep import swept\n"
        "swept(Path(sys.argv[1]), Path(sys.argv[2]), 1)"
    )
    for _ in range(2):
        child = subprocess.Popen([sys.executable, "-c", source, str(folder), str(out)])
        while child.poll() is None and sum(started(folder).values()) % 4 != 3:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.wait()
    records = swept(folder, out)
    assert [one["status"] for one in records] == ["done"] * 8
    assert max(started(folder).values()) <= 3
    left = {path.name for path in out.rglob("*") if path.is_file()}
    assert left == {"model.onnx", "record.json"}


def test_the_process_of_a_job_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    model = one_node(tmp_path / "relu.onnx", "Relu")
    call = [sys.executable, "-m", "relayout.cli.job"]
    for parent, code in ((os.getpid(), 0), (1, 1)):
        job = [str(parent), "", "check", str(model), "--max-transposes", "0"]
        done = subprocess.run([*call, *job], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
    assert "has ended" in done.stderr


def test_a_job_runs_no_more_at_a_time_than_allowed_and_is_told(tmp_path: Path) -> None:
    folder, seen = folder_of(tmp_path, *"abcd"), list[tuple[int, str]]()

    def tell(progress: SweepProgress) -> None:
        seen.append((len(progress.running), progress.text()))

    ModelSweep.of([str(folder)], tmp_path / "out", SweptCall(SWEPT["bench"])).run(
        Pool(1, STAND_IN), tell
    )
    assert max(running for running, _ in seen) == 1
    assert any("a minute" in text and "left" in text for _, text in seen)
    assert seen[-1][1] == "4 of 4 models; 4 done"


def test_sources_of_every_kind(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "a", "deep/a", "b")
    names = [model.name for model in found_models([str(folder)])]
    assert names == ["a", "b", "deep__a"]
    assert [one.name for one in found_models([f"{folder}/*.onnx"])] == ["a", "b"]
    listed = tmp_path / "list.txt"
    listed.write_text(f"# two\n{folder}/a.onnx --shape 'x=1,2'\n\n{folder}/deep/a.onnx\n")
    first, second = found_models([f"@{listed}", str(folder / "a.onnx")])
    assert (first.name, first.options) == ("a", ("--shape", "x=1,2"))
    assert second.name.startswith("a~")
    targets = [f"{folder}/a.onnx --target {target}" for target in ("onnx", "ort", "ort")]
    listed.write_text("\n".join(targets))
    first, second = found_models([f"@{listed}"])
    assert (first.options[-1], second.options[-1]) == ("onnx", "ort")
    assert second.name.startswith("a~")
    with pytest.raises(RelayoutError, match="no file matches"):
        found_models([f"{folder}/*.none"])
    with pytest.raises(RelayoutError, match="there is no model"):
        found_models([str(folder / "none.onnx")])


def test_repositories_come_from_the_cache_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("huggingface_hub")
    settings = importlib.import_module("huggingface_hub.constants")
    cache = tmp_path / "cache"
    kept = cache / "models--owner--name"
    (kept / "refs").mkdir(parents=True)
    (kept / "refs" / "main").write_text("0" * 40)
    (kept / "blobs").mkdir()
    (kept / "blobs" / "b").write_text("model")
    snapshot = kept / "snapshots" / ("0" * 40)
    (snapshot / "onnx").mkdir(parents=True)
    (snapshot / "onnx" / "model.onnx").symlink_to("../../../blobs/b")
    monkeypatch.setattr(settings, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(settings, "HF_HUB_OFFLINE", True)
    (model,) = found_models(["hf:owner/name"])
    assert model.name == "owner__name__onnx__model"
    assert model.path.read_text() == "model"


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    one_node(folder / "relu.onnx", "Relu")
    (folder / "bad.onnx").write_text("nonsense")
    call = ["sweep", str(folder), "-o", str(tmp_path / "out"), "--json", "--no-verify"]
    assert main(call) == 1
    answer = json.loads(capsys.readouterr().out)
    assert {one["name"]: one["code"] for one in answer["models"]} == {"bad": 2, "relu": 0}
    page = (tmp_path / "out" / "index.html").read_text()
    assert 'href="models/relu/report.html"' in page
    assert (tmp_path / "out/models/relu/model.onnx").exists()
    written = (tmp_path / "out/models/relu/record.json").stat().st_mtime_ns
    assert main(call) == 1
    assert (tmp_path / "out/models/relu/record.json").stat().st_mtime_ns == written
    assert main([*call, "--part", "2/2"]) == 0


def test_a_check_that_fails_is_named_with_what_is_too_much(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(network(), tmp_path / "demo.onnx")
    asked = ["--command", "check", "--max-transposes", "4"]
    assert main(["sweep", str(tmp_path / "demo.onnx"), "-o", str(tmp_path / "out"), *asked]) == 1
    assert "demo: refused: too many: 8 Transposes, at most 4" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "nothing"], "nothing"),
        (["--report", "r.html"], "--report"),
        (["--measure", "--jobs", "2"], "times are measured"),
        (["--part", "3/2"], "1/8"),
        (["--nonsense"], "nonsense"),
    ],
    ids=str,
)
def test_bad_options_are_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    folder = folder_of(tmp_path, "a")
    call = ["sweep", str(folder), "-o", str(tmp_path / "out"), *options]
    try:
        code = main(call)
    except SystemExit as end:
        code = int(end.code or 0)
    assert code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out" / "models").exists()


@pytest.mark.parametrize("kind", ["slurm", "snakemake"])
def test_a_cluster_gets_a_script_of_parts(tmp_path: Path, kind: str) -> None:
    folder, out = folder_of(tmp_path, *"abc"), tmp_path / "out"
    assert main(["sweep", str(folder), "-o", str(out), "--emit", kind, "--target", "ort"]) == 0
    script = (out / {"slurm": "sweep.sbatch", "snakemake": "Snakefile"}[kind]).read_text()
    assert "--target ort" in script
    listed = (out / "sources.txt").read_text().split()
    assert listed == [str(folder / f"{name}.onnx") for name in "abc"]
    if kind == "snakemake":
        assert "--part {wildcards.part}/3" in script
        return
    assert "#SBATCH --array=1-3" in script
    part = next(line for line in script.splitlines() if line.startswith("relayout"))
    environment = {**os.environ, "SLURM_ARRAY_TASK_ID": "2"}
    shell = ["bash", "-c", f'relayout() {{ printf "%s\\n" "$@"; }}; {part}']
    told = subprocess.run(shell, env=environment, capture_output=True, text=True, check=True)
    assert "2/3" in told.stdout.split()
