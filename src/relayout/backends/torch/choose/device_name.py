"""Devices by the names under which measurements are kept."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

import torch

from relayout.backends.torch.modules.loading import check_device


def device_name(device: str) -> str:
    """All that times of any kernel depend on: the device, threads, the version of torch."""
    check_device(device)
    if device.startswith("cuda"):
        return f"{torch.cuda.get_device_name()}-torch{torch.__version__}"
    capability = torch.backends.cpu.get_cpu_capability()
    threads = f"{torch.get_num_threads()}threads"
    return f"cpu-{processor_name()}-{capability}-{threads}-torch{torch.__version__}"


@cache
def processor_name() -> str:
    """The model of the processor, as the system names it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
