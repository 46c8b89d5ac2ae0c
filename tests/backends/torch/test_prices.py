"""What is measured is kept: by several processes at once, without noise, with reasons."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from relayout.backends.locking import locked_by_existence
from relayout.backends.torch.providers.prices import Price, Prices, read_prices

WRITER = """
import sys
from pathlib import Path
from relayout.backends.torch.providers.prices import Price, Prices

path, name = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for number in range(60):
    prices = Prices("here", path=path)
    prices.learn(f"group {number}", name, Price(1.0))
    prices.save()
"""


def kept(path: Path) -> Prices:
    return Prices("here", read_prices(path), path)


def test_two_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("first", "second")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [writer.communicate()[1] for writer in writers] == [None, None]
    assert [writer.returncode for writer in writers] == [0, 0]
    found = kept(path).known
    assert len(found) == 60
    assert all(set(by_name) == {"first", "second"} for by_name in found.values())


def test_what_another_process_measured_since_is_not_put_back(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    old = Prices("here", path=path)
    old.learn("group", "kernel", Price(1.0))
    old.save()
    late = kept(path)
    newer = Prices("here", path=path)
    newer.learn("group", "kernel", Price(2.0))
    newer.save()
    late.learn("other", "kernel", Price(3.0))
    late.save()
    assert kept(path).seconds("group") == {"kernel": 2.0}
    assert kept(path).seconds("other") == {"kernel": 3.0}


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"group": 1}', "\x00\xff"])
def test_a_file_that_cannot_be_read_is_replaced(text: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(text, encoding="latin-1")
    prices = kept(path)
    assert not prices.known
    prices.learn("group", "kernel", Price(1.0))
    prices.save()
    assert kept(path).known == {"group": {"kernel": Price(1.0)}}


def test_a_noisy_time_is_used_and_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    prices = Prices("here", path=path)
    prices.learn("group", "noisy", Price.of_runs([1.0, 1.0, 2.0, 3.0]))
    prices.learn("group", "quiet", Price.of_runs([2.0, 2.0, 2.1, 2.1, 9.0]))
    prices.save()
    assert prices.best("group", ("quiet", "noisy")) == "noisy"
    assert prices.noisy == [("group", "noisy")]
    assert set(kept(path).known["group"]) == {"quiet"}


def test_one_interrupted_run_is_not_noise() -> None:
    price = Price.of_runs([1.0, 1.01, 1.02, 1.03, 50.0])
    assert not price.is_noisy
    assert price.seconds == 1.0


def test_what_cannot_run_is_kept_with_its_reason_only(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    prices = Prices("here", path=path)
    prices.learn("group", "failing", Price.refused("no such kernel"))
    prices.learn("group", "odd", Price(math.inf))
    prices.save()
    assert json.loads(path.read_text())["group"] == {"failing": {"cannot_run": "no such kernel"}}
    assert kept(path).known["group"] == {"failing": Price.refused("no such kernel")}


def test_locks_by_existence_are_held_by_one_and_outlive_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked_by_existence(path):
        (held,) = tmp_path.iterdir()
        with pytest.raises(FileExistsError):
            held.touch(exist_ok=False)
    assert not list(tmp_path.iterdir())
    held.touch()
    os.utime(held, (0, 0))
    with locked_by_existence(path):
        assert held.exists()
