"""The table of a sweep: a row for each model, in Parquet, with each Transpose that is left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeAlias

SweepRow: TypeAlias = dict[str, Any]
"""A model in the table."""

TABLE = "sweep.parquet"
FIGURES = ("transposes", "bytes_moved", "nodes")
"""What is told of a model as it was given and as it became."""


def row_of(record: Mapping[str, Any]) -> SweepRow:
    """A model in one row; what the command did not tell is null."""
    answer: Mapping[str, Any] = record.get("answer", {})
    before, after = answer.get("before") or {}, answer.get("after") or {}
    figures = {
        f"{name}_{when}": side.get(name) if isinstance(side, Mapping) else None
        for name in FIGURES
        for when, side in (("before", before), ("after", after))
    }
    return {
        **{name: record.get(name) for name in ("name", "source", "sha256", "status", "code")},
        **{name: record.get(name) for name in ("seconds", "error", "output", "report")},
        "command": record["asked"]["command"],
        "options": record["asked"]["options"],
        "version": record["asked"]["version"],
        **{name: answer.get(name) for name in ("target", "changed", "verified", "optimal")},
        "verdict": answer.get("verdict") if isinstance(answer.get("verdict"), str) else None,
        **figures,
        "kept": [_kept(one) for one in answer.get("left", ())],
    }


def _kept(left: Mapping[str, Any]) -> dict[str, Any]:
    """A Transpose that is left, and the operators that demand the orders it stands between."""
    why = left.get("why", {})
    return {
        "name": left.get("name"),
        "perm": left.get("perm"),
        "bytes_moved": left.get("bytes_moved"),
        "stored_for": _operators(why.get("stored_for", {})),
        "wanted_by": _operators(why.get("wanted_by", {})),
        "note": why.get("note"),
    }


def _operators(demands: Mapping[str, Any]) -> list[str]:
    """The operators of one side, each once; a border of the model is called so."""
    named: Iterable[Mapping[str, Any]] = demands.get("named", ())
    return sorted({one.get("op_type") or "(border)" for one in named})


def write_table(rows: Sequence[SweepRow], path: Path) -> list[Path]:
    """Write the table, if pyarrow is installed; which files were written is returned."""
    try:
        import pyarrow  # noqa: PLC0415 - an extra
        from pyarrow import parquet  # noqa: PLC0415 - an extra
    except ImportError:
        return []
    table = pyarrow.Table.from_pylist(rows, _schema(pyarrow))
    part = path.with_name(f".{path.name}.{token_hex(6)}")
    parquet.write_table(table, part)
    part.replace(path)
    return [path]


def _schema(arrow: Any) -> Any:
    """The columns, whatever the records hold."""
    text, whole, flag = arrow.string(), arrow.int64(), arrow.bool_()
    texts = arrow.list_(text)
    moved = {"name": text, "perm": arrow.list_(whole), "bytes_moved": whole}
    kept = moved | {"stored_for": texts, "wanted_by": texts, "note": text}
    figures = [f"{name}_{when}" for name in FIGURES for when in ("before", "after")]
    columns = dict.fromkeys(("name", "source", "sha256", "status"), text)
    columns |= {"code": whole, "seconds": arrow.float64()}
    columns |= dict.fromkeys(("error", "output", "report", "command"), text)
    columns |= {"options": texts, "version": text, "target": text}
    columns |= dict.fromkeys(("changed", "verified", "optimal"), flag) | {"verdict": text}
    columns |= dict.fromkeys(figures, whole)
    columns["kept"] = arrow.list_(arrow.struct(list(kept.items())))
    return arrow.schema(list(columns.items()))
