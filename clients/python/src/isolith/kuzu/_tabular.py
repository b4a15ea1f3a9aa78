"""Rows as tables of pandas, pyarrow and polars, and the types of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

_SCALARS = {"bool": "BOOL", "int": "INT64", "float": "DOUBLE", "str": "STRING"}

# Kuzu's types that have one in Arrow. Others are found by the values.
_ARROW = {
    "BOOL": "bool_",
    "DOUBLE": "float64",
    "FLOAT": "float64",
    "STRING": "string",
    **{f"INT{bits}": "int64" for bits in (8, 16, 32, 64)},
    **{f"UINT{bits}": "int64" for bits in (8, 16, 32, 64)},
}


def kind_of(values: Iterable[Any]) -> str:
    """Kuzu's type of values; ``STRING`` if all of them are null, as in Kuzu."""
    kinds = {_kind(value) for value in values if value is not None}
    kinds.discard("")
    if not kinds:
        return "STRING"
    if kinds == {"INT64", "DOUBLE"}:
        return "DOUBLE"
    return kinds.pop() if len(kinds) == 1 else "ANY"


def to_pandas(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Any:
    """A ``pandas.DataFrame``."""
    pandas = _import("pandas", "get_as_df")
    return pandas.DataFrame(rows, columns=list(columns))


def to_arrow(
    columns: Sequence[str],
    types: Sequence[str],
    rows: Sequence[Sequence[Any]],
    chunk_size: int | None = None,
) -> Any:
    """A ``pyarrow.Table``."""
    pyarrow = _import("pyarrow", "get_as_arrow")
    arrays = [
        _array(pyarrow, [row[index] for row in rows], type) for index, type in enumerate(types)
    ]
    table = pyarrow.Table.from_arrays(arrays, names=list(columns))
    if chunk_size is not None and 0 < chunk_size < len(rows):
        batches = table.to_batches(max_chunksize=chunk_size)
        return pyarrow.Table.from_batches(batches, schema=table.schema)
    return table


def to_polars(columns: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[Any]]) -> Any:
    """A ``polars.DataFrame``."""
    polars = _import("polars", "get_as_pl")
    return polars.from_arrow(to_arrow(columns, types, rows))


def _array(pyarrow: Any, values: list[Any], type: str) -> Any:
    name = _ARROW.get(type)
    if name is not None:
        try:
            return pyarrow.array(values, type=getattr(pyarrow, name)())
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
            # Other processes can store other types where no table says one.
            pass
    return pyarrow.array(values)


def _kind(value: Any) -> str:
    kind = _SCALARS.get(type(value).__name__)
    if kind is not None:
        return kind
    if isinstance(value, list):
        element = kind_of(value) if value else ""
        return f"{element}[]" if element else ""
    if isinstance(value, dict):
        if "_nodes" in value and "_rels" in value:
            return "RECURSIVE_REL"
        if "_src" in value and "_dst" in value:
            return "REL"
        if "_id" in value and "_label" in value:
            return "NODE"
        fields = ", ".join(f"{key} {kind_of([item])}" for key, item in value.items())
        return f"STRUCT({fields})"
    return "ANY"


def _import(name: str, method: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{method}() needs {name}: pip install {name}") from error
