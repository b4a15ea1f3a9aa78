"""Copies rows into tables, many in each transaction."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from .._batches import MAX_BYTES
from .._call import to_json
from ..errors import BadInput
from ._catalog import Catalog, Column, NodeTable, RelTable
from ._columns import ColumnType
from ._convert import ConversionError, is_missing, object_converter
from ._copying import CopyFrom, Files
from ._csv import Row, csv_options, read_csv
from ._errors import binder_error, copy_error, no_table, refused
from ._frames import parquet_table, table_rows
from ._graph import Execution
from ._tokens import quoted
from ._violations import copy_violation

# The most rows in a transaction, and how many of them are serialized at once.
_MAX_ROWS = 10_000
_CHUNK = 200

_WILDCARDS = frozenset("*?[")
_DELIMITED = {".csv": None, ".tsv": "\t"}


class Target(NamedTuple):
    """Where rows go: a query that creates them, and the columns of the rows.

    ``ends`` are the node tables at both ends of relationships, whose keys are the first columns.
    """

    name: str
    query: str
    columns: tuple[Column, ...]
    key: int | None = None
    ends: tuple[NodeTable, ...] = ()

    @property
    def types(self) -> list[ColumnType]:
        """The types of the columns."""
        return [column.type for column in self.columns]


def target_of(statement: CopyFrom, catalog: Catalog) -> Target:
    """Where the rows of a statement go.

    :raises KuzuError: if the table or a column does not exist
    """
    table = catalog.find(statement.table)
    if table is None:
        raise no_table(statement.table)
    columns = table.columns
    if statement.columns is not None:
        columns = tuple(_column(table, name) for name in statement.columns)
    if isinstance(table, NodeTable):
        names = [column.name for column in columns]
        query = f"UNWIND $rows AS r CREATE (:{quoted(table.name)}{_properties(columns, 0)})"
        if table.key not in names:
            raise binder_error(f"Copy into {table.name} expects primary key {table.key} as input.")
        return Target(table.name, query, columns, key=names.index(table.key))
    return _rel_target(table, columns, statement.options, catalog)


def copy_rows(target: Target, rows: Iterable[Row], execution: Execution) -> int:
    """Creates what rows say, and returns how many there were.

    Each transaction is kept or not as a whole: those before one that fails stay.
    """
    copied = 0
    start = b'{"query":' + to_json(target.query) + b',"limit":1,"params":{"rows":['
    for count, text in _batches(_serialized(_checked(target, rows))):
        try:
            execution.send(start + text + b"]}}")
        except BadInput as error:
            raise copy_violation(error, target, text, copied, execution) from error
        copied += count
    return copied


def file_rows(files: Files, target: Target, options: dict[str, Any]) -> Iterator[Row]:
    """The rows of files.

    :raises KuzuError: if one of them does not exist or cannot be read
    """
    options = {name: value for name, value in options.items() if name not in ("FROM", "TO")}
    forced = str(options.pop("FILE_FORMAT", "")).lower()
    for path in _paths(files):
        kind = f".{forced}" if forced else os.path.splitext(path)[1].lower()
        if kind == ".parquet":
            if options:
                raise binder_error(f"Unrecognized option for parquet: {next(iter(options))}.")
            table = parquet_table(path)
            yield from object_rows(target, table_rows(table, path, _names(target)))
        elif kind in _DELIMITED:
            read = csv_options(options)
            if read.delimiter is None:
                read = read._replace(delimiter=_DELIMITED[kind])
            yield from read_csv(path, target.types, read)
        else:
            raise refused(
                f"COPY from files like {os.path.basename(path)}",
                "use .csv, .tsv or .parquet, or read it in Python and copy from a DataFrame",
            )


def object_rows(target: Target, rows: Iterable[Row]) -> Iterator[Row]:
    """Rows of objects, converted to the types of the columns."""
    converters = [object_converter(type) for type in target.types]
    for row in rows:
        try:
            values = [
                None if is_missing(value) else convert(value)
                for value, convert in zip(row.values, converters)
            ]
        except ConversionError as error:
            raise copy_error(f"{row.place}: Conversion exception: {error}") from None
        yield Row(row.place, values)


def frame_rows(value: Any, label: str, target: Target) -> Iterator[Row]:
    """The rows of a DataFrame, an Arrow table or a list of dictionaries."""
    return object_rows(target, table_rows(value, label, _names(target)))


def answer_rows(rows: Sequence[Sequence[Any]], width: int, target: Target) -> Iterator[Row]:
    """The rows that a query returned."""
    if width != len(target.columns):
        raise binder_error(
            f"Query returns {width} columns but {len(target.columns)} columns were expected."
        )
    numbered = (Row(f"Error in row {at}", list(row)) for at, row in enumerate(rows, 1))
    return object_rows(target, numbered)


def _rel_target(
    table: RelTable, columns: tuple[Column, ...], options: dict[str, Any], catalog: Catalog
) -> Target:
    pairs = list(table.ends)
    if "FROM" in options or "TO" in options:
        pairs = [
            pair
            for pair in pairs
            if pair[0].lower() == str(options.get("FROM", pair[0])).lower()
            and pair[1].lower() == str(options.get("TO", pair[1])).lower()
        ]
        if not pairs:
            asked = f"{options.get('FROM', '')}-{options.get('TO', '')}"
            raise binder_error(f"Rel table {table.name} does not contain {asked} from-to pair.")
    if len(pairs) > 1:
        raise binder_error(
            f"The table {table.name} has multiple FROM and TO pairs defined in the schema. A "
            "specific pair of FROM and TO options is expected when copying data into the "
            f"{table.name} table."
        )
    ends = []
    for name in pairs[0]:
        end = catalog.node_table(name)
        if end is None:
            raise no_table(name)
        ends.append(end)
    start, end = ends
    query = (
        "UNWIND $rows AS r "
        f"OPTIONAL MATCH (a:{quoted(start.name)} {{{quoted(start.key)}: r[0]}}) "
        f"OPTIONAL MATCH (b:{quoted(end.name)} {{{quoted(end.key)}: r[1]}}) "
        f"CREATE (a)-[:{quoted(table.name)}{_properties(columns, 2)}]->(b)"
    )
    keys = (_key_column(start)._replace(name="from"), _key_column(end)._replace(name="to"))
    return Target(table.name, query, (*keys, *columns), ends=(start, end))


def _key_column(table: NodeTable) -> Column:
    column = table.column(table.key)
    assert column is not None, "the key of a table is one of its columns"
    return column


def _column(table: NodeTable | RelTable, name: str) -> Column:
    column = table.column(name)
    if column is None:
        raise binder_error(f"Table {table.name} does not contain column {name}.")
    return column


def _properties(columns: Sequence[Column], first: int) -> str:
    """The properties in ``CREATE``. Large floats come as text."""
    items = []
    for index, column in enumerate(columns, first):
        value = f"r[{index}]"
        if column.type.is_float and not column.type.is_list:
            value = f"toFloat({value})"
        items.append(f"{quoted(column.name)}: {value}")
    return f" {{{', '.join(items)}}}" if items else ""


def _names(target: Target) -> list[str]:
    return [column.name for column in target.columns]


def _checked(target: Target, rows: Iterable[Row]) -> Iterator[list[Any]]:
    """The values of rows, with all keys."""
    floats = [
        index
        for index, column in enumerate(target.columns)
        if column.type.is_float and not column.type.is_list
    ]
    required = [0, 1] if target.ends else [target.key]
    for place, values in rows:
        for index in required:
            if index is not None and values[index] is None:
                raise copy_error(
                    "Found NULL, which violates the non-null constraint of the primary key column.",
                    f"{place[:1].lower()}{place[1:]}",
                )
        for index in floats:
            value = values[index]
            # The server does not take numbers of 2^63 and more.
            if value is not None and abs(value) >= 2**63:
                values[index] = repr(value)
        yield values


def _serialized(rows: Iterator[list[Any]]) -> Iterator[tuple[int, bytes]]:
    """Rows as JSON, without brackets around them, and how many they are."""
    size = min(_CHUNK, _MAX_ROWS)
    while True:
        chunk = list(islice(rows, size))
        if not chunk:
            return
        yield from _split(chunk)


def _split(rows: list[list[Any]]) -> Iterator[tuple[int, bytes]]:
    text = to_json(rows)[1:-1]
    if len(text) > MAX_BYTES and len(rows) > 1:
        middle = len(rows) // 2
        yield from _split(rows[:middle])
        yield from _split(rows[middle:])
    else:
        yield len(rows), text


def _batches(parts: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Parts put together, as many as a transaction may have."""
    batch: list[bytes] = []
    count = size = 0
    for rows, part in parts:
        if batch and (count + rows > _MAX_ROWS or size + len(part) > MAX_BYTES):
            yield count, b",".join(batch)
            batch, count, size = [], 0, 0
        batch.append(part)
        count += rows
        size += len(part) + 1
    if batch:
        yield count, b",".join(batch)


def _paths(files: Files) -> Iterator[str]:
    for given in files.paths:
        path = os.path.expanduser(given)
        if os.path.exists(path):
            yield path
            continue
        found = sorted(glob.glob(path)) if _WILDCARDS & set(path) else []
        if not found:
            raise binder_error(f"No file found that matches the pattern: {given}.")
        yield from found
