"""Rows of tables that are objects of Python, and where they are found."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import FrameType
from typing import Any

from ._errors import binder_error, copy_error
from ._parts import Part

_UNSUPPORTED = (
    "Attempted to scan from unsupported python object. Can only scan from pandas/polars "
    "dataframes, pyarrow tables and lists of dictionaries."
)

# How many rows of a table are converted to objects at once.
_CHUNK = 10_000


def find_variable(name: str, frame: FrameType | None) -> Any:
    """A variable of the caller, or of who called it.

    :raises KuzuError: if there is none that is a table
    """
    has_name = False
    while frame is not None:
        for names in (frame.f_locals, frame.f_globals):
            if name in names:
                has_name = True
                if is_table(names[name]):
                    return names[name]
        frame = frame.f_back
    if has_name:
        raise binder_error(_UNSUPPORTED)
    raise binder_error(f"Variable {name} is not in scope.")


def is_table(value: Any) -> bool:
    """Whether rows can be read from it."""
    return _kind(value) != ""


def table_parts(value: Any, label: str, names: Sequence[str]) -> Iterator[Part]:
    """The rows of a table, in the order of its columns; of dictionaries, by these names.

    :param label: what to call the table in errors
    :raises KuzuError: if it is no table, or has another number of columns
    """
    kind = _kind(value)
    if not kind:
        raise binder_error(_UNSUPPORTED)
    length = value.num_rows if kind == "arrow" else len(value)
    if kind != "dicts":
        width = len(value.columns) if kind != "arrow" else value.num_columns
        if width != len(names):
            raise binder_error(
                f"{label} has {width} columns but {len(names)} columns were expected."
            )
    for start in range(0, length, _CHUNK):
        yield Part(_COLUMNS[kind](value, start, names), partial(_place, start + 1))


def parquet_table(path: str) -> Any:
    """The table in a Parquet file.

    :raises KuzuError: if it cannot be read
    :raises ImportError: if pyarrow is not installed
    """
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError("COPY from Parquet needs pyarrow: pip install pyarrow") from error
    try:
        return parquet.read_table(path)
    except (ValueError, OSError) as error:
        # The exceptions of pyarrow are such.
        raise copy_error(f"cannot read {path}: {error}") from None


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "dicts" if all(isinstance(row, Mapping) for row in value) else ""
    module = type(value).__module__.partition(".")[0]
    if module == "pandas" and hasattr(value, "iloc") and hasattr(value, "columns"):
        return "pandas"
    if module == "polars" and hasattr(value, "iter_rows"):
        return "polars"
    if module == "pyarrow" and hasattr(value, "num_columns"):
        return "arrow"
    return ""


def _place(first: int, index: int) -> str:
    return f"Error in row {first + index}"


def _dict_columns(rows: Any, start: int, names: Sequence[str]) -> list[list[Any]]:
    part = rows[start : start + _CHUNK]
    for row in part:
        if not row.keys() <= set(names):
            (key, *_) = (key for key in row if key not in names)
            raise binder_error(f"Cannot find property {key}. Rows have {', '.join(names)}.")
    return [[row.get(name) for row in part] for name in names]


def _pandas_columns(frame: Any, start: int, names: Sequence[str]) -> list[list[Any]]:
    part = frame.iloc[start : start + _CHUNK]
    return [part.iloc[:, index].tolist() for index in range(len(names))]


def _polars_columns(frame: Any, start: int, names: Sequence[str]) -> list[list[Any]]:
    return [column.to_list() for column in frame.slice(start, _CHUNK).get_columns()]


def _arrow_columns(table: Any, start: int, names: Sequence[str]) -> list[list[Any]]:
    return [column.to_pylist() for column in table.slice(start, _CHUNK).columns]


_COLUMNS = {
    "dicts": _dict_columns,
    "pandas": _pandas_columns,
    "polars": _polars_columns,
    "arrow": _arrow_columns,
}
