"""Measures networks: python -m benchmarks.networks --device cuda | --device cpu PATH

On CUDA families of networks that are made on the spot; on a CPU the models of a zoo (as for
`benchmarks.zoo`). `--help` after the device lists the options.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

HOMES = {
    "cuda": "benchmarks.networks.measuring_cuda",
    "cpu": "benchmarks.networks.measuring_cpu",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, add_help=False)
    parser.add_argument("--device", choices=tuple(HOMES), default="cuda")
    options, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    import_module(HOMES[options.device]).main()


if __name__ == "__main__":
    main()
