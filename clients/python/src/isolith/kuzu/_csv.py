"""Rows of CSV files, with the options that Kuzu has for them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

from ._columns import ColumnType
from ._convert import ConversionError, text_converter
from ._errors import binder_error, copy_error, refused

_DELIMITERS = (",", ";", "\t", "|")

# The longest value in bytes: longer ones do not fit into a request.
_MAX_CELL = 64 << 20

_BOOLEANS = ("HEADER", "PARALLEL", "LIST_UNBRACED", "AUTODETECT", "AUTO_DETECT", "IGNORE_ERRORS")


class CsvOptions(NamedTuple):
    """How files are read. ``None`` is to be found out."""

    header: bool | None = None
    delimiter: str | None = None
    quote: str = '"'
    escape: str = '"'
    skip: int = 0
    null_strings: frozenset[str] = frozenset(("",))


class Row(NamedTuple):
    """A row, and where it is from."""

    place: str
    values: list[Any]


def csv_options(options: dict[str, Any]) -> CsvOptions:
    """The options of ``COPY`` for CSV files.

    :raises KuzuError: if one of them is unknown, invalid or not supported
    """
    header = delimiter = None
    read = CsvOptions()
    for name, value in options.items():
        if name in _BOOLEANS and not isinstance(value, bool):
            raise binder_error(f"The value type of parsing csv option {name} must be a boolean.")
        if name == "HEADER":
            header = value
        elif name in ("DELIM", "DELIMITER"):
            delimiter = _character(name, value)
        elif name == "QUOTE":
            read = read._replace(quote=_character(name, value))
        elif name == "ESCAPE":
            read = read._replace(escape=_character(name, value))
        elif name == "SKIP":
            read = read._replace(skip=int(value))
        elif name == "NULL_STRINGS":
            read = read._replace(null_strings=frozenset(value))
        elif name in ("IGNORE_ERRORS", "LIST_UNBRACED"):
            if value:
                raise refused(f"{name} of COPY", "correct the rows, or copy them from a DataFrame")
        elif name in ("AUTODETECT", "AUTO_DETECT"):
            header = header if value or header is not None else False
            delimiter = delimiter if value or delimiter is not None else ","
        elif name not in ("PARALLEL", "SAMPLE_SIZE"):
            raise binder_error(f"Unrecognized csv parsing option: {name}.")
    return read._replace(header=header, delimiter=delimiter)


def read_csv(path: str, types: Sequence[ColumnType], options: CsvOptions) -> Iterator[Row]:
    """The rows of a file, converted.

    :raises KuzuError: if it cannot be read, or a row does not fit
    """
    converters = [text_converter(type) for type in types]
    nulls = options.null_strings
    with _long_cells(), _opened(path) as file:
        for number, cells in _cells(file, path, types, options):
            values: list[Any] = []
            place = f"Error in file {path} on line {number}"
            if len(cells) == len(types) + 1 and not cells[-1]:
                # A delimiter at the end of the line.
                cells.pop()
            if len(cells) != len(types):
                raise copy_error(
                    f"{place}: expected {len(types)} values per row, but got {len(cells)}."
                )
            try:
                for cell, convert in zip(cells, converters):
                    values.append(None if cell in nulls else convert(cell))
            except ConversionError as error:
                raise copy_error(f"{place}: Conversion exception: {error}") from None
            yield Row(place, values)


def _cells(
    file: IO[str], path: str, types: Sequence[ColumnType], options: CsvOptions
) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line that is not empty, and its number, without the header."""
    for _ in range(options.skip):
        file.readline()
    delimiter = options.delimiter or _delimiter(file, len(types), options)
    reader = csv.reader(file, **_dialect(delimiter, options))
    is_first = True
    try:
        for cells in reader:
            if not cells or (len(cells) == 1 and not cells[0] and len(types) > 1):
                continue
            if is_first and _is_header(cells, types, options):
                is_first = False
                continue
            is_first = False
            yield reader.line_num + options.skip, cells
    except csv.Error as error:
        raise copy_error(
            f"Error in file {path} on line {reader.line_num + options.skip}: {error}."
        ) from None


def _dialect(delimiter: str, options: CsvOptions) -> dict[str, Any]:
    doubles = options.escape == options.quote
    return {
        "delimiter": delimiter,
        "quotechar": options.quote,
        "doublequote": doubles,
        "escapechar": None if doubles else options.escape,
        "strict": True,
    }


def _delimiter(file: IO[str], columns: int, options: CsvOptions) -> str:
    """The first delimiter that makes as many cells of the first line as there are columns."""
    start = file.tell()
    line = file.readline()
    file.seek(start)
    for delimiter in _DELIMITERS:
        try:
            cells = next(csv.reader([line], **_dialect(delimiter, options)), [])
        except csv.Error:
            continue
        if len(cells) == columns:
            return delimiter
    return ","


def _is_header(cells: list[str], types: Sequence[ColumnType], options: CsvOptions) -> bool:
    """Whether the first line is one: by the option, or because no cell has the type of its column.

    As in Kuzu, a file with columns of text only has a header if the option says so.
    """
    if options.header is not None:
        return options.header
    fits = []
    for cell, type in zip(cells, types):
        if (type.base == "STRING" and not type.is_list) or cell in options.null_strings:
            continue
        try:
            text_converter(type)(cell)
            fits.append(True)
        except ConversionError:
            fits.append(False)
    return bool(fits) and not any(fits)


def _character(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise binder_error(f"The value type of parsing csv option {name} must be a string.")
    character = "\t" if value == "\\t" else value
    if len(character) != 1:
        raise binder_error(f"Copy csv option {name} must be a single character.")
    return character


@contextmanager
def _opened(path: str) -> Iterator[IO[str]]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            yield file
    except OSError as error:
        raise copy_error(f"Cannot read file {path}: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise copy_error(f"Error in file {path}: Invalid UTF8-encoded string: {error}.") from None


@contextmanager
def _long_cells() -> Iterator[None]:
    """Lets cells be longer than the csv module usually takes."""
    before = csv.field_size_limit()
    csv.field_size_limit(max(before, _MAX_CELL))
    try:
        yield
    finally:
        csv.field_size_limit(before)
