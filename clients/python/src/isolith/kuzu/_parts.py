"""Rows of tables on their way to the server: converted column by column, and written as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from .._call import to_json
from ._convert import ConversionError, is_missing, is_plain, object_converter, text_converter
from ._errors import copy_error

if TYPE_CHECKING:
    from ._columns import ColumnType

Converter = Callable[[Any], Any]


class Part(NamedTuple):
    """Some rows of a table, by columns.

    :ivar place: says where the row with an index is from, as errors begin
    """

    columns: list[list[Any]]
    place: Callable[[int], str]


class Piece(NamedTuple):
    """Some rows of a part, as they are sent.

    :ivar kinds: the server's types of the columns
    :ivar text: the rows in CSV, as JSON without the quotes around it
    """

    part: Part
    start: int
    stop: int
    kinds: list[str]
    text: bytes


class Batch(NamedTuple):
    """Rows that are copied in one transaction."""

    pieces: list[Piece]

    @property
    def kinds(self) -> list[str]:
        """The server's types of the columns."""
        return self.pieces[0].kinds

    @property
    def text(self) -> bytes:
        """The rows in CSV, as JSON."""
        return b'"' + b"".join(piece.text for piece in self.pieces) + b'"'

    def row(self, number: int) -> tuple[str, list[Any]]:
        """Where a row is from, and its values. Rows are numbered from 1."""
        for piece in self.pieces:
            index = piece.start + number - 1
            if index < piece.stop:
                return piece.part.place(index), [column[index] for column in piece.part.columns]
            number -= piece.stop - piece.start
        return "", []

    def column(self, index: int) -> Iterator[Any]:
        """The values of a column."""
        for piece in self.pieces:
            yield from piece.part.columns[index][piece.start : piece.stop]


def of_texts(part: Part, types: Sequence[ColumnType], nulls: frozenset[str]) -> Part:
    """Rows of a file as values.

    :raises KuzuError: if one of them has no value
    """

    def cell(convert: Converter) -> Converter:
        return lambda text: None if text in nulls else convert(text)

    converters = [text_converter(type) for type in types]
    try:
        columns = [
            [None if text in nulls else convert(text) for text in column]
            for column, convert in zip(part.columns, converters)
        ]
    except ConversionError:
        _raise_first_error(part, [cell(convert) for convert in converters])
        raise
    return part._replace(columns=columns)


def of_objects(part: Part, types: Sequence[ColumnType]) -> Part:
    """Rows of objects as values.

    :raises KuzuError: if one of them has no value
    """

    def cell(convert: Converter) -> Converter:
        return lambda value: None if is_missing(value) else convert(value)

    converters = [cell(object_converter(type)) for type in types]
    try:
        columns = [
            column if is_plain(column, type) else [convert(value) for value in column]
            for column, type, convert in zip(part.columns, types, converters)
        ]
    except ConversionError:
        _raise_first_error(part, converters)
        raise
    return part._replace(columns=columns)


def batches(
    parts: Iterable[Part], types: Sequence[ColumnType], most_rows: int, most_bytes: int
) -> Iterator[Batch]:
    """Rows put together, as many as a transaction may have."""
    pieces: list[Piece] = []
    rows = size = 0
    for part in parts:
        for start in range(0, len(part.columns[0]), most_rows):
            stop = min(start + most_rows, len(part.columns[0]))
            for piece in _pieces(part, start, stop, types, most_bytes):
                count = piece.stop - piece.start
                if pieces and (
                    rows + count > most_rows
                    or size + len(piece.text) > most_bytes
                    or piece.kinds != pieces[0].kinds
                ):
                    yield Batch(pieces)
                    pieces, rows, size = [], 0, 0
                pieces.append(piece)
                rows += count
                size += len(piece.text)
    if pieces:
        yield Batch(pieces)


def _pieces(
    part: Part, start: int, stop: int, types: Sequence[ColumnType], most_bytes: int
) -> Iterator[Piece]:
    columns = [column[start:stop] for column in part.columns]
    kinds = [_kind(column, type) for column, type in zip(columns, types)]
    text = to_json(_csv(columns, kinds))[1:-1]
    if len(text) > most_bytes and stop - start > 1:
        middle = (start + stop) // 2
        yield from _pieces(part, start, middle, types, most_bytes)
        yield from _pieces(part, middle, stop, types, most_bytes)
    else:
        yield Piece(part, start, stop, kinds, text)


def _kind(values: list[Any], type: ColumnType) -> str:
    """The server's type of a column. In CSV, an empty text would be null."""
    if type.is_list:
        return "json"
    if type.is_integer:
        return "int"
    if type.is_float:
        return "float"
    if type.base == "BOOL":
        return "bool"
    return "json" if type.base == "ANY" or "" in values else "string"


def _csv(columns: list[list[Any]], kinds: list[str]) -> str:
    columns = [
        [None if value is None else json.dumps(value, ensure_ascii=False) for value in column]
        if kind == "json"
        else column
        for column, kind in zip(columns, kinds)
    ]
    out = io.StringIO()
    # With this end of lines, all versions of Python put quotes around texts with either character.
    csv.writer(out, lineterminator="\r\n").writerows(zip(*columns))
    return out.getvalue()


def _raise_first_error(part: Part, converters: list[Converter]) -> None:
    """Raises the error of the first row that has one."""
    for index, values in enumerate(zip(*part.columns)):
        try:
            for value, convert in zip(values, converters):
                convert(value)
        except ConversionError as error:
            raise copy_error(f"{part.place(index)}: Conversion exception: {error}") from None
