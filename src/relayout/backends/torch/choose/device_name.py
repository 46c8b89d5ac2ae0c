"""Devices by the names under which measurements are kept."""

from __future__ import annotations

import torch

from relayout.backends.machine import processor_name
from relayout.backends.torch.modules.loading import check_device


def device_name(device: str) -> str:
    """All that times of any kernel depend on: the device, threads, the version of torch."""
    check_device(device)
    if device.startswith("cuda"):
        return f"{torch.cuda.get_device_name()}-torch{torch.__version__}"
    capability = torch.backends.cpu.get_cpu_capability()
    threads = f"{torch.get_num_threads()}threads"
    return f"cpu-{processor_name()}-{capability}-{threads}-torch{torch.__version__}"
