"""Copies rows into tables: the server imports them as CSV, many in each transaction."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .._call import to_json
from ..errors import BadInput, TooLarge
from ._catalog import NodeTable
from ._csv import CsvFile, csv_options
from ._errors import binder_error, no_table, refused
from ._frames import parquet_table, table_parts
from ._parts import batches, of_objects
from ._violations import copy_violation

if TYPE_CHECKING:
    from ._catalog import Catalog, Column, RelTable
    from ._columns import ColumnType
    from ._copying import CopyFrom, Files
    from ._graph import Execution
    from ._parts import Part

# The most rows and bytes of a transaction. The server takes 16 MiB of JSON, and texts are longer in
# JSON.
_MAX_ROWS = 200_000
_MAX_BYTES = 8 << 20

_WILDCARDS = frozenset("*?[")
_DELIMITED = {".csv": None, ".tsv": "\t"}


class Target(NamedTuple):
    """Where rows go, and their columns.

    ``ends`` are the node tables at both ends of relationships, whose keys are the first columns;
    ``key`` is the position of the key among the columns of nodes.
    """

    name: str
    columns: tuple[Column, ...]
    key: int | None = None
    ends: tuple[NodeTable, ...] = ()

    @property
    def types(self) -> list[ColumnType]:
        """The types of the columns."""
        return [column.type for column in self.columns]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    def request(self) -> dict[str, Any]:
        """What rows become, as the server has it."""
        if not self.ends:
            assert self.key is not None, "rows of nodes have a key"
            key = self.columns[self.key].name
            return {"nodes": {"label": self.name, "key": key, "existing": "refuse"}}
        start, end = ({"label": table.name, "key": table.key} for table in self.ends)
        return {"relationships": {"type": self.name, "from": start, "to": end}}


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
        if table.key not in names:
            raise binder_error(f"Copy into {table.name} expects primary key {table.key} as input.")
        return Target(table.name, columns, key=names.index(table.key))
    return _rel_target(table, columns, statement.options, catalog)


class Copy:
    """Copies rows into a table. Each transaction is kept or not as a whole: those before one that
    fails stay.

    :ivar count: how many rows were copied
    """

    def __init__(self, target: Target, execution: Execution) -> None:
        self.count = 0
        self._target = target
        self._execution = execution

    def parts(self, parts: Iterable[Part]) -> None:
        """Copies rows that have been converted."""
        for batch in batches(parts, self._target.types, _MAX_ROWS, _MAX_BYTES):
            try:
                self.count += self._execution.import_rows(self._body(batch.text, batch.kinds)).rows
            except BadInput as error:
                raise copy_violation(error, self._target, batch, self._execution) from error

    def files(self, files: Files, options: dict[str, Any]) -> None:
        """Copies the rows of files.

        :raises KuzuError: if one of them does not exist or cannot be read
        """
        options = {name: it for name, it in options.items() if name not in ("FROM", "TO")}
        forced = str(options.pop("FILE_FORMAT", "")).lower()
        for path in _paths(files):
            kind = f".{forced}" if forced else os.path.splitext(path)[1].lower()
            if kind == ".parquet":
                if options:
                    raise binder_error(f"Unrecognized option for parquet: {next(iter(options))}.")
                self.table(parquet_table(path), path)
            elif kind in _DELIMITED:
                read = csv_options(options)
                if read.delimiter is None:
                    read = read._replace(delimiter=_DELIMITED[kind])
                with CsvFile(path, self._target.types, read) as file:
                    self._csv(file)
            else:
                raise refused(
                    f"COPY from files like {os.path.basename(path)}",
                    "use .csv, .tsv or .parquet, or read it in Python and copy from a DataFrame",
                )

    def table(self, value: Any, label: str) -> None:
        """Copies the rows of a DataFrame, an Arrow table or a list of dictionaries."""
        types = self._target.types
        parts = table_parts(value, label, self._target.names)
        self.parts(of_objects(part, types) for part in parts)

    def answer(self, rows: list[list[Any]], width: int) -> None:
        """Copies the rows that a query returned."""
        names = self._target.names
        if width != len(names):
            raise binder_error(
                f"Query returns {width} columns but {len(names)} columns were expected."
            )
        self.table([dict(zip(names, row)) for row in rows], "")

    def _csv(self, file: CsvFile) -> None:
        """Copies a file, as it is if the server reads its cells as Kuzu does.

        If the server refuses a block, it is read here: either it is valid after all, or there is an
        error that says what is wrong on which line.
        """
        kinds = [_kind_of_text(type) for type in self._target.types]
        if not file.is_plain or not all(kinds):
            return self.parts(file.parts())
        for block in file.blocks(_MAX_BYTES):
            more = not block.is_last
            body = self._body(to_json(block.text), kinds, file.delimiter, more)
            try:
                taken = self._execution.import_rows(body)
            except (BadInput, TooLarge):
                return self.parts(file.parts())
            if more and not taken.bytes:
                # One row is as long as a block.
                return self.parts(file.parts())
            self.count += taken.rows
            file.take(taken.bytes)
        return None

    def _body(
        self, rows: bytes, kinds: Sequence[str | None], delimiter: str = ",", more: bool = False
    ) -> bytes:
        names = self._target.names
        for index, _ in enumerate(self._target.ends):
            # They only have to differ from the others.
            while names[index] in names[index + 1 :]:
                names[index] += "_"
        request = {
            **self._target.request(),
            "columns": [f"{name}:{kind}" for name, kind in zip(names, kinds)],
            "delimiter": delimiter,
            "more": more,
        }
        return to_json(request)[:-1] + b',"rows":' + rows + b"}"


def _kind_of_text(type: ColumnType) -> str | None:
    """The server's type for the cells of a file, if it reads them as Kuzu does."""
    if type.is_list:
        return None
    if type.is_integer:
        return "int" if type.base in ("INT64", "INT128") else type.base.lower()
    if type.is_float:
        return "float"
    return {"BOOL": "bool", "STRING": "string"}.get(type.base)


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
    keys = (_key_column(start)._replace(name="from"), _key_column(end)._replace(name="to"))
    return Target(table.name, (*keys, *columns), ends=(start, end))


def _key_column(table: NodeTable) -> Column:
    column = table.column(table.key)
    assert column is not None, "the key of a table is one of its columns"
    return column


def _column(table: NodeTable | RelTable, name: str) -> Column:
    column = table.column(name)
    if column is None:
        raise binder_error(f"Table {table.name} does not contain column {name}.")
    return column


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
