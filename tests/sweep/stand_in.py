"""A command that stands in for relayout: quick, and bad in the ways that models' names ask for."""

import json
import sys
import time
from pathlib import Path

_parent, _memory, command, model, *options = sys.argv[1:]
name = Path(model).stem
with Path(model).with_name("started.txt").open("a") as log:
    log.write(f"{name}\n")
if name.startswith("slow"):
    time.sleep(60)
if name.startswith("pause"):
    time.sleep(0.5)
if name.startswith("crash"):
    sys.exit(-9)
if name.startswith("refused"):
    sys.stdout.write(json.dumps({"verdict": "differs: y"}))
    sys.exit(1)
if name.startswith("bad"):
    sys.stdout.write("not json")
    sys.stderr.write("no model at all\n")
    sys.exit(2)
if "-o" in options:
    Path(options[options.index("-o") + 1]).write_bytes(Path(model).read_bytes())
left = {
    "name": "t",
    "perm": [1, 0],
    "bytes_moved": 64,
    "why": {"wanted_by": {"named": [{"op_type": "MatMul"}]}, "note": ""},
}
figures = {"transposes": 2, "bytes_moved": 128, "nodes": 3}
after = {"transposes": 1, "bytes_moved": 64, "nodes": 2}
answer = {"target": "onnx", "before": figures, "after": after, "left": [left], "verdict": "equal"}
sys.stdout.write(json.dumps(answer))
